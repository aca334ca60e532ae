package console

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/atomredis/atomredis/doors/door"
	"github.com/atomredis/atomredis/resp"
)

const (
	walkTime  = 80 * time.Millisecond // limit of a request's walk over keys
	walkCount = 2000                  // COUNT of SCAN
	maxNames  = 1000                  // keys, and groups, in one reply

	// A walk examines the types and the memory of the first weighAll keys of a group, then of one key in weighEvery.
	weighAll, weighEvery = 32, 32
)

// walk is a request for the keys below a prefix, from a cursor on.
type walk struct {
	DB        int    `json:"db"`
	Prefix    binary `json:"prefix"`
	Separator string `json:"separator"`
	Match     binary `json:"match"` // a further pattern that keys must match, "" for all
	Type      string `json:"type"`  // "" for all
	Cursor    string `json:"cursor"`
}

// branch is the result of one step of a walk: keys, and groups of keys that continue after a separator. The work of a
// step is bounded.
type branch struct {
	Cursor  string            `json:"cursor"` // "0" at the end
	Scanned int               `json:"scanned"`
	Keys    []binary          `json:"keys"`
	More    int               `json:"more"` // keys that are left out because there are too many names
	Groups  map[string]*group `json:"groups"`
}

// group describes the keys that continue with one name, its key in Groups. Its memory is estimated from the examined
// keys.
type group struct {
	Keys    int            `json:"keys"`
	Weighed int            `json:"weighed"`
	Bytes   int64          `json:"bytes"`
	Types   map[string]int `json:"types"`
}

// tree walks over the keys below a prefix.
func (c *Console) tree(w http.ResponseWriter, r *http.Request, s *session) error {
	var q walk
	if err := read(w, r, 64<<10, &q); err != nil {
		return err
	}
	out := branch{Cursor: q.Cursor, Keys: []binary{}, Groups: map[string]*group{}}
	if out.Cursor == "" {
		out.Cursor = "0"
	}
	err := s.with(r.Context(), q.DB, func(client *door.Client) error {
		for begin := time.Now(); ; {
			if err := q.step(r, client, &out); err != nil {
				return err
			}
			if out.Cursor == "0" || time.Since(begin) > walkTime {
				return nil
			}
		}
	})
	if err != nil {
		return err
	}
	respond(w, http.StatusOK, out)
	return nil
}

// step calls SCAN once.
func (q *walk) step(r *http.Request, client *door.Client, out *branch) error {
	pattern := string(q.Match)
	if pattern == "" {
		pattern = escapeGlob(string(q.Prefix)) + "*"
	}
	args := []any{"SCAN", out.Cursor, "MATCH", pattern, "COUNT", walkCount}
	if q.Type != "" {
		args = append(args, "TYPE", q.Type)
	}
	reply, err := client.Do(r.Context(), args...)
	if err != nil {
		return err
	}
	cursor, keys, err := scanned(reply)
	if err != nil {
		return err
	}
	out.Cursor = cursor
	out.Scanned += walkCount
	var weigh []*group
	var b door.Batch
	for _, key := range keys {
		rest, ok := strings.CutPrefix(key, string(q.Prefix))
		if !ok {
			continue
		}
		if g := out.add(rest, q.Separator); g != nil {
			if g.Keys++; g.Keys <= weighAll || g.Keys%weighEvery == 0 {
				weigh = append(weigh, g)
				b.Add("TYPE", key)
				b.Add("MEMORY", "USAGE", key)
			}
		}
	}
	replies, err := client.Pipeline(r.Context(), &b)
	if err != nil {
		return err
	}
	for i, g := range weigh {
		if kind, err := replies[2*i].Text(); err == nil && kind != "none" {
			g.Types[kind]++
		}
		if n, err := replies[2*i+1].Int(); err == nil { // the key may be gone, or the user may lack the permission
			g.Weighed++
			g.Bytes += n
		}
	}
	return nil
}

// add adds the rest of a key after the prefix, and returns its group, nil if it has none.
func (out *branch) add(rest, separator string) *group {
	name, _, ok := strings.Cut(rest, separator)
	if !ok || separator == "" {
		if len(out.Keys) == maxNames {
			out.More++
		} else {
			out.Keys = append(out.Keys, binary(rest))
		}
		return nil
	}
	name = latin(name + separator)
	g := out.Groups[name]
	if g == nil {
		if len(out.Groups) == maxNames {
			out.More++
			return nil
		}
		g = &group{Types: map[string]int{}}
		out.Groups[name] = g
	}
	return g
}

// latin returns a string with a character for each byte, as in the JSON of binary.
func latin(s string) string {
	runes := make([]rune, len(s))
	for i := range len(s) {
		runes[i] = rune(s[i])
	}
	return string(runes)
}

// escapeGlob returns a pattern that only s matches.
func escapeGlob(s string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`).Replace(s)
}

// scanned reads the reply of SCAN.
func scanned(reply resp.Reply) (cursor string, keys []string, err error) {
	page, err := reply.Slice()
	if err != nil {
		return "", nil, err
	}
	if len(page) != 2 {
		return "", nil, errRequest
	}
	if cursor, err = page[0].Text(); err != nil {
		return "", nil, err
	}
	if _, err := strconv.ParseUint(cursor, 10, 64); err != nil {
		return "", nil, errRequest
	}
	keys, err = page[1].Texts()
	return cursor, keys, err
}
