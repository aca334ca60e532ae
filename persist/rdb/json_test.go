package rdb

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/engine/documents"
)

// jsonValue returns the payload of a document in a version.
func jsonValue(version uint64, data ...any) []byte {
	e := Encoder{buf: []byte{typeModule}}
	e.length(moduleID(jsonModule, version))
	w := ModuleWriter{&e}
	for _, datum := range data {
		switch datum := datum.(type) {
		case int:
			w.Uint(uint64(datum))
		case float64:
			w.Double(datum)
		case string:
			w.Text(datum)
		}
	}
	e.length(moduleEnd)
	return Seal(e.buf)
}

func TestDocumentsOfAllVersionsAreRead(t *testing.T) {
	const text = `{"a":[1,-2,1.5,2.0,1e300],"b":{},"c":null,"d":[true,false],"e\n\"\\":"é\u0001"}`
	tree := []any{jsonObject, 5,
		jsonMember, "a", jsonArray, 5, jsonInteger, 1, jsonInteger, -2, jsonNumber, 1.5, jsonNumber, 2.0, jsonNumber, 1e300,
		jsonMember, "b", jsonObject, 0, jsonMember, "c", jsonNull,
		jsonMember, "d", jsonArray, 2, jsonBool, "1", jsonBool, "0",
		jsonMember, "e\n\"\\", jsonString, "é\x01"}
	for _, payload := range [][]byte{jsonValue(0, tree...), jsonValue(2, text), jsonValue(2, text, 0), jsonValue(2, text, 1, "index", "path"),
		jsonValue(3, text)} {
		v, err := Restore(payload, &limits)
		require.NoError(t, err)
		require.Equal(t, text, string(v.(*documents.Document).Root().AppendJSON(nil, documents.Layout{})))
	}
	for _, version := range []uint64{1, 4} {
		_, err := Restore(jsonValue(version, text), &limits)
		require.ErrorIs(t, err, ErrUnsupported)
	}
	var deep []any
	for range maxJSONDepth + 2 {
		deep = append(deep, jsonArray, 1)
	}
	for name, payload := range map[string][]byte{
		"no text":                      jsonValue(3),
		"two texts":                    jsonValue(3, text, text),
		"no JSON":                      jsonValue(3, "{"),
		"no names":                     jsonValue(2, text, 1),
		"a node of another type":       jsonValue(0, 3),
		"a member that is none":        jsonValue(0, jsonObject, 1, jsonString, "a", jsonNull),
		"a member outside":             jsonValue(0, jsonMember, "a", jsonNull),
		"a number that JSON has not":   jsonValue(0, jsonNumber, math.Inf(1)),
		"a text that is not UTF-8":     jsonValue(0, jsonString, "\xff"),
		"more elements than there are": jsonValue(0, jsonArray, 1<<30, jsonNull),
		"too deep":                     jsonValue(0, append(deep, jsonNull)...),
	} {
		_, err := Restore(payload, &limits)
		require.ErrorIs(t, err, ErrCorrupt, name)
	}
}
