package expr

import (
	"math"
	"strings"

	"github.com/atomredis/atomredis/engine/geo"
	"github.com/atomredis/atomredis/internal/search/query"
	"github.com/atomredis/atomredis/internal/search/value"
)

// geoDistance is the distance of two places in metres. A place is "lon,lat", a score, or two numbers; otherwise the
// result is NaN.
func geoDistance(args []value.Value) (value.Value, error) {
	var places [2]geo.Position
	for i := range places {
		// With three arguments, the first decides which place has two.
		_, isNumber := args[0].ToNumber()
		if pair := len(args) == 4 || i == 0 && len(args) == 3 && isNumber || i == 1 && len(args) == 2; pair {
			lon, ok := args[0].ToNumber()
			lat, also := args[1].ToNumber()
			if ok && also {
				places[i] = geo.Position{Lon: lon, Lat: lat}
				args = args[2:]
				continue
			}
			return value.Num(math.NaN()), nil
		}
		p, ok, err := place(args[0])
		if err != nil {
			return value.Value{}, err
		}
		if !ok {
			return value.Num(math.NaN()), nil
		}
		places[i], args = p, args[1:]
	}
	return value.Num(math.Round(geo.Distance(places[0], places[1])*100) / 100), nil
}

// place converts a value to a place.
func place(v value.Value) (geo.Position, bool, error) {
	switch v.Kind() {
	case value.Number:
		return geo.FromScore(v.Float()), true, nil
	case value.String:
		p, err := parsePlace(v.Text())
		return p, err == nil, err
	}
	return geo.Position{}, false, nil
}

// parsePlace reads "lon,lat" or "lon lat".
func parsePlace(s string) (geo.Position, error) {
	if len(s) > 128 {
		return geo.Position{}, errorf(query.BadArguments, "Geo string cannot be longer than 128 bytes")
	}
	i := strings.IndexAny(s, " ,")
	if i < 0 {
		return geo.Position{}, errorf(query.BadArguments, "Invalid geo string: missing separator")
	}
	lon, ok := value.ParseNumber(strings.TrimSpace(s[:i]))
	if !ok {
		return geo.Position{}, query.BadPlace(s[:i])
	}
	lat, ok := value.ParseNumber(strings.TrimSpace(s[i+1:]))
	if !ok {
		return geo.Position{}, query.BadPlace(s[i+1:])
	}
	return geo.Position{Lon: lon, Lat: lat}, nil
}
