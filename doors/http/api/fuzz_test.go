package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzCommands checks that the parser reads what encoding/json reads, and nothing else.
func FuzzCommands(f *testing.F) {
	for _, seed := range []string{`[["SET","k",1.50,true]]`, `[]`, `[["a"],["b","\u00e4\ud83d\ude00"]]`, `[["a"`, `[["a",null]]`, `[["a"]]x`,
		`[["a" "b"]]`, `[["a",]]`, `[[{}]]`, "[[\"\xff\"]]", `[[1e5,-0]]`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		commands, err := newParser(body).commands()
		var want [][]any
		d := json.NewDecoder(bytes.NewReader(body))
		d.UseNumber()
		known := json.Valid(body) && d.Decode(&want) == nil && want != nil
		for _, words := range want {
			known = known && len(words) > 0
			for _, word := range words {
				switch word.(type) {
				case string, json.Number, bool:
				default:
					known = false
				}
			}
		}
		if err != nil {
			require.False(t, known, "%q: %v", body, err)
			return
		}
		require.True(t, json.Valid(body))
		require.Len(t, commands, len(want))
		for i, words := range commands {
			require.Len(t, words, len(want[i]))
			for j, word := range words {
				require.Equal(t, fmt.Sprint(want[i][j]), string(word))
			}
		}
	})
}
