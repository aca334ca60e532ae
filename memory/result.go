package memory

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/atomredis/atomredis/internal/values"
	"github.com/atomredis/atomredis/resp"
)

// writeResult writes the result of a Command's handler in the protocol of w; depth counts the collections around v. If
// it fails, a part of v may be written.
func writeResult(w *resp.Writer, v any, depth int) error {
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
	case int64:
		w.Int(v)
	case uint64:
		if v > math.MaxInt64 {
			w.BigNumber(strconv.FormatUint(v, 10))
		} else {
			w.Int(int64(v))
		}
	case float32:
		w.Double(float64(v))
	case float64:
		w.Double(v)
	case time.Time:
		w.Bulk(v.AppendFormat(nil, time.RFC3339Nano))
	case Reply:
		return w.Reply(v)
	case error:
		w.Error(errorText(v))
	default:
		return writeReflected(w, v, depth)
	}
	return nil
}

// writeReflected writes values of other types than those in writeResult.
func writeReflected(w *resp.Writer, a any, depth int) error {
	if depth > values.MaxNesting {
		return values.ErrTooDeep
	}
	v := reflect.ValueOf(a)
	if scalar, ok, err := values.Scalar(v, a); ok || err != nil {
		if err != nil {
			return err
		}
		return writeResult(w, scalar, depth)
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			w.Null()
			return nil
		}
		return writeResult(w, v.Elem().Interface(), depth+1)
	case reflect.Slice, reflect.Array:
		w.Array(v.Len())
		for i := range v.Len() {
			if err := writeResult(w, v.Index(i).Interface(), depth+1); err != nil {
				return err
			}
		}
		return nil
	case reflect.Map:
		w.Map(v.Len())
		for _, k := range values.SortedKeys(v) {
			if err := writeResult(w, k.Interface(), depth+1); err != nil {
				return err
			}
			if err := writeResult(w, v.MapIndex(k).Interface(), depth+1); err != nil {
				return err
			}
		}
		return nil
	case reflect.Struct:
		fields := values.Fields(v)
		if fields == nil {
			return fmt.Errorf("the command returned a %T, none of whose fields has a tag `redis:\"name\"`", a)
		}
		fields = slices.DeleteFunc(fields, func(f values.Field) bool { return f.Omitted })
		w.Map(len(fields))
		for _, f := range fields {
			w.BulkString(f.Name)
			if err := writeResult(w, f.Value.Interface(), depth+1); err != nil {
				return err
			}
		}
		return nil
	}
	return fmt.Errorf("the command returned a %T, which cannot be a reply", a)
}

// oneLine replaces line breaks, which would end a status reply.
func oneLine(s string) string { return strings.NewReplacer("\r", " ", "\n", " ").Replace(s) }

// errorText returns the text of an error reply.
func errorText(err error) string {
	if e, ok := err.(Error); ok && e != "" {
		return string(e)
	}
	return "ERR " + err.Error()
}
