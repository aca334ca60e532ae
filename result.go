package atomredis

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/atomredis/atomredis/resp"
)

// maxResultDepth is how deep what a handler returns can be nested.
const maxResultDepth = 32

var errResultTooDeep = errors.New("what the command returned is nested too deeply")

// writeResult writes what the handler of a Command has returned, in the protocol of w; depth is how many collections it is in. If
// it fails, a part of it may be written.
func writeResult(w *resp.Writer, v any, depth int) error {
	if depth > maxResultDepth {
		return errResultTooDeep
	}
	switch v := v.(type) {
	case nil:
		w.Null()
	case string:
		w.BulkString(v)
	case []byte:
		w.Bulk(v)
	case Status:
		w.Simple(oneLine(string(v)))
	case bool:
		w.Bool(v)
	case int:
		w.Int(int64(v))
	case int8:
		w.Int(int64(v))
	case int16:
		w.Int(int64(v))
	case int32:
		w.Int(int64(v))
	case int64:
		w.Int(v)
	case uint8:
		w.Int(int64(v))
	case uint16:
		w.Int(int64(v))
	case uint32:
		w.Int(int64(v))
	case float32:
		w.Double(float64(v))
	case float64:
		w.Double(v)
	case Reply:
		return writeReply(w, v)
	case error:
		w.Error(errorText(v))
	case []any:
		return writeAll(w, v, depth)
	case []string:
		return writeAll(w, v, depth)
	case []Reply:
		return writeAll(w, v, depth)
	case map[string]any:
		return writeMap(w, v, depth)
	case map[string]string:
		return writeMap(w, v, depth)
	default:
		return fmt.Errorf("the command returned a %T, which is no reply", v)
	}
	return nil
}

func writeAll[T any](w *resp.Writer, list []T, depth int) error {
	w.Array(len(list))
	for _, v := range list {
		if err := writeResult(w, v, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func writeMap[T any](w *resp.Writer, m map[string]T, depth int) error {
	w.Map(len(m))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		w.BulkString(k)
		if err := writeResult(w, m[k], depth+1); err != nil {
			return err
		}
	}
	return nil
}

// oneLine replaces line breaks, which would end a status reply.
func oneLine(s string) string { return strings.NewReplacer("\r", " ", "\n", " ").Replace(s) }

// errorText returns an error as a reply words it.
func errorText(err error) string {
	if e, ok := err.(Error); ok && e != "" {
		return string(e)
	}
	return "ERR " + err.Error()
}

// writeReply writes a reply, which is in RESP3, in the protocol of w.
func writeReply(w *resp.Writer, r Reply) error {
	if len(r.raw) == 0 {
		return ErrNoReply
	}
	if w.Proto == 3 {
		w.Raw(r.raw)
		return nil
	}
	_, err := writeNext(w, r.raw)
	return err
}

// writeNext writes the first of the replies in b, and returns those behind it.
func writeNext(w *resp.Writer, b []byte) (rest []byte, err error) {
	r, rest, err := nextReply(b)
	if err != nil {
		return nil, err
	}
	if r.IsNull() {
		w.Null()
		return rest, nil
	}
	switch kind := r.raw[0]; kind {
	case '*', '~', '>', '%':
		n, elements, err := r.elements()
		if err != nil {
			return nil, err
		}
		w.Array(n)
		for range n {
			if elements, err = writeNext(w, elements); err != nil {
				return nil, err
			}
		}
	default:
		content, err := r.content()
		if err != nil {
			return nil, err
		}
		switch kind {
		case '#':
			w.Bool(content[0] == 't')
		case ',', '(', '=':
			w.Bulk(content)
		case '!':
			w.Error(string(content))
		default:
			w.Raw(r.raw)
		}
	}
	return rest, nil
}
