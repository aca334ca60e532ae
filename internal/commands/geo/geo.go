// Package geo has the commands on geographical indices, which are sorted sets whose scores are positions.
package geo

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/geo"
	"github.com/atomredis/atomredis/engine/zsets"
	"github.com/atomredis/atomredis/internal/command"
	zsetcommands "github.com/atomredis/atomredis/internal/commands/zsets"
	"github.com/atomredis/atomredis/resp"
)

const (
	geoUnits = "<M | KM | FT | MI>"
	geoShape = "[FROMMEMBER member | FROMLONLAT longitude latitude] <BYRADIUS radius " + geoUnits +
		" | BYBOX width height " + geoUnits + " | BYPOLYGON num-vertices longitude latitude [longitude latitude ...]>"
	geoLimits  = "[ASC | DESC] [COUNT count [ANY]]"
	geoWith    = "[WITHCOORD] [WITHDIST] [WITHHASH]"
	geoCost    = "O(N+log(M)), where N is the number of members in the boxes around the area and M the size of the index"
	geoReplace = "`GEOSEARCH` with the `BYRADIUS` argument"
)

func init() { command.Register(geoCommands) }

var geoCommands = []*command.Command{
	{Name: "geoadd", Group: "geo", Since: "3.2.0", Arity: -5, Flags: command.Write | command.DenyOOM, ACL: command.CatGeo,
		Keys:       command.Keys("i1+r0/1/0[RW,UPDATE]"),
		Summary:    "Adds members with their positions, or changes the positions of members",
		Syntax:     "key [NX | XX] [CH] longitude latitude member [longitude latitude member ...]",
		Complexity: "O(log(N)) for each member, where N is the size of the index", Do: cmdGeoadd},
	{Name: "geodist", Group: "geo", Since: "3.2.0", Arity: -4, Flags: command.ReadOnly, ACL: command.CatGeo,
		Keys:    command.Keys("i1+r0/1/0[RO,ACCESS]"),
		Summary: "Returns the distance of two members", Syntax: "key member1 member2 [M | KM | FT | MI]",
		Complexity: "O(1)", Do: cmdGeodist},
	{Name: "geohash", Group: "geo", Since: "3.2.0", Arity: -2, Flags: command.ReadOnly, ACL: command.CatGeo,
		Keys:    command.Keys("i1+r0/1/0[RO,ACCESS]"),
		Summary: "Returns the positions of members as geohashes", Syntax: "key [member [member ...]]",
		Complexity: "O(1) for each member", Do: cmdGeohash},
	{Name: "geopos", Group: "geo", Since: "3.2.0", Arity: -2, Flags: command.ReadOnly, ACL: command.CatGeo,
		Keys:    command.Keys("i1+r0/1/0[RO,ACCESS]"),
		Summary: "Returns the longitudes and latitudes of members", Syntax: "key [member [member ...]]",
		Complexity: "O(1) for each member", Do: cmdGeopos},
	{Name: "georadius", Group: "geo", Since: "3.2.0", Deprecated: "6.2.0",
		Instead: "`GEOSEARCH` and `GEOSEARCHSTORE` with the `BYRADIUS` argument",
		Arity:   -6, Flags: command.Write | command.DenyOOM, ACL: command.CatGeo, Keys: command.Keys("i1+r0/1/0[RO,ACCESS] " +
			"kw:STORE@6+r0/1/0[OW,UPDATE] kw:STOREDIST@6+r0/1/0[OW,UPDATE]"),
		DerivedKeys: storeKeys(6), KeyIndices: sourceAndStore(6),
		Summary: "Finds the members in a circle around a position, or stores them",
		Syntax: "key longitude latitude radius " + geoUnits + " " + geoWith + " [COUNT count [ANY]] [ASC | DESC] " +
			"[STORE key] [STOREDIST key]",
		Complexity: geoCost, Do: cmdGeoradius},
	{Name: "georadius_ro", Group: "geo", Since: "3.2.10", Deprecated: "6.2.0", Instead: geoReplace,
		Arity: -6, Flags: command.ReadOnly, ACL: command.CatGeo, Keys: command.Keys("i1+r0/1/0[RO,ACCESS]"),
		Summary: "Finds the " +
			"members in a circle around a position",
		Syntax:     "key longitude latitude radius " + geoUnits + " " + geoWith + " [COUNT count [ANY]] [ASC | DESC]",
		Complexity: geoCost, Do: cmdGeoradius},
	{Name: "georadiusbymember", Group: "geo", Since: "3.2.0", Deprecated: "6.2.0",
		Instead: "`GEOSEARCH` and `GEOSEARCHSTORE` with the `BYRADIUS` and `FROMMEMBER` arguments",
		Arity:   -5, Flags: command.Write | command.DenyOOM, ACL: command.CatGeo, Keys: command.Keys("i1+r0/1/0[RO,ACCESS] " +
			"kw:STORE@5+r0/1/0[OW,UPDATE] kw:STOREDIST@5+r0/1/0[OW,UPDATE]"),
		DerivedKeys: storeKeys(5), KeyIndices: sourceAndStore(5),
		Summary: "Finds the members in a circle around a member, or stores them",
		Syntax: "key member radius " + geoUnits + " " + geoWith + " [COUNT count [ANY]] [ASC | DESC] " +
			"[STORE key] [STOREDIST key]",
		Complexity: geoCost, Do: cmdGeoradiusbymember},
	{Name: "georadiusbymember_ro", Group: "geo", Since: "3.2.10", Deprecated: "6.2.0",
		Instead: "`GEOSEARCH` with the `BYRADIUS` and `FROMMEMBER` arguments",
		Arity:   -5, Flags: command.ReadOnly, ACL: command.CatGeo, Keys: command.Keys("i1+r0/1/0[RO,ACCESS]"),
		Summary: "Finds the " +
			"members in a circle around a member",
		Syntax: "key member radius " + geoUnits + " " + geoWith + " [COUNT count [ANY]] [ASC | DESC]", Complexity: geoCost,
		Do: cmdGeoradiusbymember},
	{Name: "geosearch", Group: "geo", Since: "6.2.0", Arity: -7, Flags: command.ReadOnly, ACL: command.CatGeo,
		Keys:       command.Keys("i1+r0/1/0[RO,ACCESS]"),
		Summary:    "Finds the members in a circle, box or polygon",
		Syntax:     "key " + geoShape + " " + geoLimits + " " + geoWith,
		Complexity: geoCost, Do: cmdGeosearch},
	{Name: "geosearchstore", Group: "geo", Since: "6.2.0", Arity: -8, Flags: command.Write | command.DenyOOM,
		ACL:        command.CatGeo,
		Keys:       command.Keys("i1+r0/1/0[OW,UPDATE] i2+r0/1/0[RO,ACCESS]"),
		Summary:    "Stores the members in a circle, box or polygon",
		Syntax:     "destination source " + geoShape + " " + geoLimits + " [STOREDIST]",
		Complexity: geoCost, Do: cmdGeosearchstore},
}

const (
	errGeoUnit        command.Error = "ERR unsupported unit provided. please use M, KM, FT, MI"
	errGeoRadius      command.Error = "ERR need numeric radius"
	errGeoRadiusSign  command.Error = "ERR radius cannot be negative"
	errGeoWidth       command.Error = "ERR need numeric width"
	errGeoHeight      command.Error = "ERR need numeric height"
	errGeoBoxSign     command.Error = "ERR height or width cannot be negative"
	errGeoMember      command.Error = "ERR could not decode requested zset member"
	errGeoCount       command.Error = "ERR COUNT must be > 0"
	errGeoAny         command.Error = "ERR the ANY argument requires COUNT argument"
	errGeoVertices    command.Error = "ERR GEOSEARCH BYPOLYGON must have at least 3 vertices"
	errGeoStoreWith   command.Error = "ERR STORE option in GEORADIUS is not compatible with WITHDIST, WITHHASH and WITHCOORD options"
	errGeoSearchStore command.Error = "ERR GEOSEARCHSTORE is not compatible with WITHDIST, WITHHASH and WITHCOORD options"
)

// geoPosition reads a longitude and a latitude; if they are invalid, it writes an error and ok is false.
func geoPosition(c *command.Ctx, lon, lat []byte) (p geo.Position, ok bool) {
	if p.Lon, ok = c.Float(lon); !ok {
		return p, false
	}
	if p.Lat, ok = c.Float(lat); !ok {
		return p, false
	}
	if !p.Valid() {
		c.Err(command.Error("ERR invalid longitude,latitude pair " + decimals(p.Lon) + "," + decimals(p.Lat)))
		return p, false
	}
	return p, true
}

// decimals prints a number as C's %f does.
func decimals(f float64) string {
	switch {
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	}
	return strconv.FormatFloat(f, 'f', 6, 64)
}

// geoUnit reads a unit of length and returns it in metres; if it is invalid, it writes an error and ok is false.
func geoUnit(c *command.Ctx, arg []byte) (metres float64, ok bool) {
	switch {
	case command.EqualFold(arg, "m"):
		return 1, true
	case command.EqualFold(arg, "km"):
		return 1000, true
	case command.EqualFold(arg, "ft"):
		return 0.3048, true
	case command.EqualFold(arg, "mi"):
		return 1609.34, true
	}
	c.Err(errGeoUnit)
	return 0, false
}

func cmdGeoadd(c *command.Ctx) {
	var r zsetcommands.AddRule
	o := c.Options(2)
flags:
	for rest := o.Rest(); len(rest) > 0; rest = o.Rest() {
		switch w := rest[0]; {
		case command.EqualFold(w, "nx"):
			r.NX = true
		case command.EqualFold(w, "xx"):
			r.XX = true
		case command.EqualFold(w, "ch"):
			r.CH = true
		default:
			break flags
		}
		o.Skip(1)
	}
	members := o.Rest()
	if len(members) == 0 || len(members)%3 != 0 || r.NX && r.XX {
		c.Err(command.ErrSyntax)
		return
	}
	var room [16]float64
	scores := room[:0]
	for m := range slices.Chunk(members, 3) {
		p, ok := geoPosition(c, m[0], m[1])
		if !ok {
			return
		}
		scores = append(scores, float64(p.Score()))
	}
	zsetcommands.AddScores(c, r, scores, members)
}

func cmdGeodist(c *command.Ctx) {
	unit := 1.0
	switch len(c.Args) {
	case 4:
	case 5:
		var ok bool
		if unit, ok = geoUnit(c, c.Args[4]); !ok {
			return
		}
	default:
		c.Err(command.ErrSyntax)
		return
	}
	e, ok := c.ReadAs(c.Args[1], engine.ZSet)
	if !ok {
		return
	}
	a, ok1 := memberPosition(e, c.Args[2])
	b, ok2 := memberPosition(e, c.Args[3])
	if !ok1 || !ok2 {
		c.W.Null()
		return
	}
	replyDistance(c, geo.Distance(a, b)/unit)
}

// memberPosition returns the position of a member of e, which may be nil; ok is false if there is no such member.
func memberPosition(e *engine.Entry, member []byte) (p geo.Position, ok bool) {
	if e == nil {
		return p, false
	}
	score, ok := e.ZSet().Score(member)
	return geo.FromScore(score), ok
}

// replyDistance writes a distance with four decimals, as a string.
func replyDistance(c *command.Ctx, d float64) {
	var scratch [40]byte
	c.W.Bulk(strconv.AppendFloat(scratch[:0], d, 'f', 4, 64))
}

// replyPosition writes a longitude and a latitude.
func replyPosition(c *command.Ctx, p geo.Position) {
	c.W.Array(2)
	c.W.Double(p.Lon)
	c.W.Double(p.Lat)
}

func cmdGeohash(c *command.Ctx) {
	eachPosition(c, c.W.Null, func(p geo.Position) {
		var scratch [11]byte
		c.W.Bulk(p.AppendHash(scratch[:0]))
	})
}

func cmdGeopos(c *command.Ctx) {
	eachPosition(c, c.W.NullArray, func(p geo.Position) { replyPosition(c, p) })
}

// eachPosition replies with a list that has an item for each requested member.
func eachPosition(c *command.Ctx, missing func(), found func(p geo.Position)) {
	e, ok := c.ReadAs(c.Args[1], engine.ZSet)
	if !ok {
		return
	}
	c.W.Array(len(c.Args) - 2)
	for _, member := range c.Args[2:] {
		if p, ok := memberPosition(e, member); ok {
			found(p)
		} else {
			missing()
		}
	}
}

// geoQuery holds the options of a search.
type geoQuery struct {
	shape geo.Shape
	unit  float64 // of distances in the reply, in metres

	withDistance, withHash, withPosition bool

	order geoOrder
	count int64 // 0 = all
	any   bool  // any count members are enough

	store     []byte // the key to store the result under, nil if it is the reply
	storeDist bool   // store the distances as scores
}

type geoOrder uint8

const (
	unsorted geoOrder = iota
	nearestFirst
	farthestFirst
)

// geoFound is a member that a search has found.
type geoFound struct {
	member   []byte // a view, valid until the set changes
	score    float64
	distance float64 // in metres; 0 if the search does not need it
}

func cmdGeoradius(c *command.Ctx) {
	e, ok := c.ReadAs(c.Args[1], engine.ZSet)
	if !ok {
		return
	}
	var q geoQuery
	if q.shape.Center, ok = geoPosition(c, c.Args[2], c.Args[3]); !ok || !geoRadius(c, &q, c.Args[4], c.Args[5]) {
		return
	}
	georadius(c, e, &q, 6)
}

func cmdGeoradiusbymember(c *command.Ctx) {
	e, ok := c.ReadAs(c.Args[1], engine.ZSet)
	if !ok {
		return
	}
	var q geoQuery
	if e != nil { // for a missing key only the options are checked
		if q.shape.Center, ok = memberPosition(e, c.Args[2]); !ok {
			c.Err(errGeoMember)
			return
		}
		if !geoRadius(c, &q, c.Args[3], c.Args[4]) {
			return
		}
	}
	georadius(c, e, &q, 5)
}

// geoRadius reads a radius and its unit; if they are invalid, it writes an error and returns false.
func geoRadius(c *command.Ctx, q *geoQuery, radius, unit []byte) (ok bool) {
	if q.shape.Radius, ok = resp.ParseFloat(radius); !ok {
		c.Err(errGeoRadius)
		return false
	}
	if q.shape.Radius < 0 {
		c.Err(errGeoRadiusSign)
		return false
	}
	if q.unit, ok = geoUnit(c, unit); !ok {
		return false
	}
	q.shape.Radius *= q.unit
	return true
}

// geoBox reads the sides of a box and their unit; if they are invalid, it writes an error and returns false.
func geoBox(c *command.Ctx, q *geoQuery, width, height, unit []byte) (ok bool) {
	s := &q.shape
	if s.Width, ok = resp.ParseFloat(width); !ok {
		c.Err(errGeoWidth)
		return false
	}
	if s.Height, ok = resp.ParseFloat(height); !ok {
		c.Err(errGeoHeight)
		return false
	}
	if s.Width < 0 || s.Height < 0 {
		c.Err(errGeoBoxSign)
		return false
	}
	if q.unit, ok = geoUnit(c, unit); !ok {
		return false
	}
	s.Box = true
	s.Width *= q.unit
	s.Height *= q.unit
	return true
}

// geoPolygon reads the number of vertices, and these; if they are invalid, it writes an error and returns false.
func geoPolygon(c *command.Ctx, q *geoQuery, o *command.OptionArgs) (ok bool) {
	n, ok := c.Int(o.Arg())
	switch {
	case !ok:
		return false
	case n < 3:
		c.Err(errGeoVertices)
		return false
	case n > int64(o.Left()/2):
		c.Err(command.ErrSyntax)
		return false
	}
	vertices := make([]geo.Position, n)
	for i := range vertices {
		if vertices[i], ok = geoPosition(c, o.Arg(), o.Arg()); !ok {
			return false
		}
	}
	q.shape, q.unit = geo.NewPolygon(vertices), 1
	return true
}

// option reads the present option if it is one that all searches have. If its value is wrong, it writes an error and
// ok is false.
func (q *geoQuery) option(c *command.Ctx, o *command.OptionArgs) (known, ok bool) {
	switch {
	case o.Is("withdist"):
		q.withDistance = true
	case o.Is("withhash"):
		q.withHash = true
	case o.Is("withcoord"):
		q.withPosition = true
	case o.Is("any"):
		q.any = true
	case o.Is("asc"):
		q.order = nearestFirst
	case o.Is("desc"):
		q.order = farthestFirst
	case o.Is("count") && o.More():
		if q.count, ok = c.Int(o.Arg()); !ok {
			return true, false
		}
		if q.count <= 0 {
			c.Err(errGeoCount)
			return true, false
		}
	default:
		return false, true
	}
	return true, true
}

// georadius reads the options of GEORADIUS, which begin at argument from, and searches e.
func georadius(c *command.Ctx, e *engine.Entry, q *geoQuery, from int) {
	mayStore := c.Cmd.Flags&command.Write != 0
	for o := c.Options(from); o.Next(); {
		known, ok := q.option(c, &o)
		switch {
		case !ok:
			return
		case known:
		case mayStore && o.Is("store") && o.More():
			q.store, q.storeDist = o.Arg(), false
		case mayStore && o.Is("storedist") && o.More():
			q.store, q.storeDist = o.Arg(), true
		default:
			c.Err(command.ErrSyntax)
			return
		}
	}
	if q.store != nil && (q.withDistance || q.withHash || q.withPosition) {
		c.Err(errGeoStoreWith)
		return
	}
	geosearch(c, e, q, "georadiusstore")
}

// sourceAndStore finds the keys that GEORADIUS really uses: its source, and the last destination. Its options begin
// at argument from.
func sourceAndStore(from int) func(args [][]byte) []int {
	return func(args [][]byte) []int {
		for i := len(args) - 2; i >= from; i-- {
			if command.EqualFold(args[i], "store") || command.EqualFold(args[i], "storedist") {
				return []int{1, i + 1}
			}
		}
		return []int{1}
	}
}

// storeKeys finds the keys after STORE and STOREDIST among the options of GEORADIUS, which begin at argument from.
// The key specs find only the first of each, but the last one counts.
func storeKeys(from int) func(args [][]byte, fn func(key []byte)) {
	return func(args [][]byte, fn func(key []byte)) {
		for i := from; i+1 < len(args); i++ {
			if command.EqualFold(args[i], "store") || command.EqualFold(args[i], "storedist") {
				fn(args[i+1])
			}
		}
	}
}

func cmdGeosearch(c *command.Ctx)      { readGeosearch(c, 1, nil) }
func cmdGeosearchstore(c *command.Ctx) { readGeosearch(c, 2, c.Args[1]) }

// readGeosearch reads the options of GEOSEARCH after the key to search, which is argument at, and searches.
func readGeosearch(c *command.Ctx, at int, store []byte) {
	e, ok := c.ReadAs(c.Args[at], engine.ZSet)
	if !ok {
		return
	}
	q := geoQuery{store: store}
	var fromMember, fromPosition, byRadius, byBox, byPolygon bool
	for o := c.Options(at + 1); o.Next(); {
		known, ok := q.option(c, &o)
		switch {
		case !ok:
			return
		case known:
		case store != nil && o.Is("storedist"):
			q.storeDist = true
		case o.Is("frommember") && o.More() && !fromPosition && !byPolygon:
			fromMember = true
			member := o.Arg()
			if e == nil {
				continue
			}
			if q.shape.Center, ok = memberPosition(e, member); !ok {
				c.Err(errGeoMember)
				return
			}
		case o.Is("fromlonlat") && o.Left() >= 2 && !fromMember && !byPolygon:
			fromPosition = true
			if q.shape.Center, ok = geoPosition(c, o.Arg(), o.Arg()); !ok {
				return
			}
		case o.Is("byradius") && o.Left() >= 2 && !byBox && !byPolygon:
			byRadius = true
			if !geoRadius(c, &q, o.Arg(), o.Arg()) {
				return
			}
		case o.Is("bybox") && o.Left() >= 3 && !byRadius && !byPolygon:
			byBox = true
			if !geoBox(c, &q, o.Arg(), o.Arg(), o.Arg()) {
				return
			}
		case o.Is("bypolygon") && o.More() && !fromMember && !fromPosition && !byRadius && !byBox && !byPolygon:
			byPolygon = true
			if !geoPolygon(c, &q, &o) {
				return
			}
		default:
			c.Err(command.ErrSyntax)
			return
		}
	}
	exactlyOne := func(of string) {
		c.Err(command.Error(fmt.Sprintf("ERR exactly one of %s can be specified for %s", of, command.UntilNUL(c.Args[0]))))
	}
	switch {
	case store != nil && (q.withDistance || q.withHash || q.withPosition):
		c.Err(errGeoSearchStore)
	case byPolygon:
		geosearch(c, e, &q, "geosearchstore")
	case !fromMember && !fromPosition:
		exactlyOne("FROMMEMBER or FROMLONLAT")
	case !byRadius && !byBox:
		exactlyOne("BYRADIUS and BYBOX")
	default:
		geosearch(c, e, &q, "geosearchstore")
	}
}

// geosearch searches e, which is nil for a missing key, and replies with the result or stores it.
func geosearch(c *command.Ctx, e *engine.Entry, q *geoQuery, event string) {
	if q.any && q.count == 0 {
		c.Err(errGeoAny)
		return
	}
	find := func() []geoFound { return nil }
	if e != nil {
		ranges := q.shape.Ranges()
		q.long(c, e.ZSet(), ranges)
		find = func() []geoFound { return q.find(e.ZSet(), ranges) }
	}
	if q.store == nil {
		replyFound(c, find(), q)
		return
	}
	result := command.Result(c, func() *zsets.ZSet { return q.scored(find(), c.Host.ZSetLimits()) })
	zsetcommands.Store(c, q.store, result, event)
}

// long calls Ctx.Long if the ranges have many members. The work of a search with ANY is not known before.
func (q *geoQuery) long(c *command.Ctx, z *zsets.ZSet, ranges []geo.Range) {
	if q.any || z.Len() < command.LongFrom {
		return
	}
	n := 0
	for _, r := range ranges {
		n += z.CountByScore(scoresOf(r))
	}
	c.Long(n, z.Len())
}

// scoresOf returns the scores in a range.
func scoresOf(r geo.Range) zsets.ScoreRange {
	return zsets.ScoreRange{Min: r.Min, Max: r.Max, MaxEx: true}
}

// scored returns the found members as a sorted set to store.
func (q *geoQuery) scored(found []geoFound, limits zsets.Limits) *zsets.ZSet {
	result := zsets.New()
	for i := range found {
		score := found[i].score
		if q.storeDist {
			score = found[i].distance / q.unit
		}
		result.Set(found[i].member, score, zsetcommands.Unstored)
	}
	return zsetcommands.Compact(result, limits)
}

// find returns the members in the area, in the requested number and order. They are all in the ranges.
func (q *geoQuery) find(z *zsets.ZSet, ranges []geo.Range) []geoFound {
	order := q.order
	if order == unsorted && q.count != 0 && !q.any {
		order = nearestFirst // a limit without an order means the nearest members
	}
	var found []geoFound
	enough := func() bool { return q.any && int64(len(found)) >= q.count }
	area, far := q.shape.Area(), order != unsorted || q.withDistance || q.storeDist
	for _, r := range ranges {
		if enough() {
			break
		}
		z.RangeByScore(scoresOf(r), false, 0, -1,
			func(member []byte, score float64) bool {
				if p := geo.FromScore(score); area.Contains(p) {
					f := geoFound{member: member, score: score}
					if far {
						f.distance = geo.Distance(q.shape.Center, p)
					}
					found = append(found, f)
				}
				return !enough()
			})
	}
	if order != unsorted {
		return sortFound(found, order, q.count)
	}
	if q.count != 0 && int64(len(found)) > q.count {
		found = found[:q.count]
	}
	return found
}

// sortFound returns the first count members in an order, all if count is 0. Members at the same distance keep their
// order. It sorts places, which are a third of a member's size, and of very many members only those that may be
// among the first.
func sortFound(found []geoFound, order geoOrder, count int64) []geoFound {
	type place struct {
		distance float64
		at       int
	}
	compare := func(a, b place) int {
		switch {
		case a.distance < b.distance:
			return -1
		case a.distance > b.distance:
			return 1
		}
		return a.at - b.at
	}
	wanted := len(found)
	if count != 0 {
		wanted = int(min(count, int64(wanted)))
	}
	places := make([]place, 0, min(2*wanted, len(found)))
	limit := math.Inf(1) // farther members are not among the first
	for i := range found {
		p := place{found[i].distance, i}
		if order == farthestFirst {
			p.distance = -p.distance
		}
		if p.distance > limit {
			continue
		}
		if len(places) == cap(places) {
			slices.SortFunc(places, compare)
			places = places[:wanted]
			limit = places[wanted-1].distance
		}
		places = append(places, p)
	}
	slices.SortFunc(places, compare)
	places = places[:wanted]
	sorted := make([]geoFound, len(places))
	for i, p := range places {
		sorted[i] = found[p.at]
	}
	return sorted
}

// replyFound replies with members: alone, or each in a list with the other requested values.
func replyFound(c *command.Ctx, found []geoFound, q *geoQuery) {
	parts := 1
	for _, with := range [...]bool{q.withDistance, q.withHash, q.withPosition} {
		if with {
			parts++
		}
	}
	c.W.Array(len(found))
	for i := range found {
		f := &found[i]
		if parts > 1 {
			c.W.Array(parts)
		}
		c.W.Bulk(f.member)
		if q.withDistance {
			replyDistance(c, f.distance/q.unit)
		}
		if q.withHash {
			c.W.Int(int64(f.score))
		}
		if q.withPosition {
			replyPosition(c, geo.FromScore(f.score))
		}
	}
}
