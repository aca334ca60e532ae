package event

import (
	"testing"

	"github.com/stretchr/testify/require"
)

var events = []struct {
	message string
	event   Event
}{
	{"PUT 1 1:k,1:v,", Event{Type: Put, Revision: 1, Keys: [][]byte{[]byte("k")}, Value: []byte("v")}},
	{"PUT 2 0:,3:a,b,3:s_0,", Event{Type: Put, Revision: 2, Keys: [][]byte{{}}, Value: []byte("a,b"), Owner: []byte("s_0")}},
	{"DELETE 3 1:a,2:bc,", Event{Type: Delete, Revision: 3, Keys: [][]byte{[]byte("a"), []byte("bc")}}},
	{"FINISH 4 6:FAILED,4:1: 2,", Event{Type: Finish, Revision: 4, Status: []byte("FAILED"), Message: []byte("1: 2")}},
}

func TestMessagesAreReadAsTheyWereWritten(t *testing.T) {
	for _, test := range events {
		require.Equal(t, test.message, string(test.event.Append(nil)))
		got, err := Decode([]byte(test.message))
		require.NoError(t, err)
		require.Equal(t, test.event, got)
	}
}

func TestMalformedMessagesAreRefused(t *testing.T) {
	for _, message := range []string{"", "PUT", "PUT 1", "PUT 1 ", "PUT 1 1:k,", "PUT x 1:k,1:v,", "PUT -1 1:k,1:v,", "PUT 01 1:k,1:v,",
		"PUT 1 1:k,1:v", "PUT 1 1:k,2:v,", "PUT 1 1:k,1:v,0:,0:,", "PUT 1 01:k,1:v,", "PUT 1 1k,", "PUT 1 99999999999999999999:k,",
		"FINISH 1 1:a,", "MOVE 1 1:k,"} {
		_, err := Decode([]byte(message))
		require.Error(t, err, message)
	}
}

func FuzzDecode(f *testing.F) {
	for _, test := range events {
		f.Add([]byte(test.message))
	}
	f.Fuzz(func(t *testing.T, message []byte) {
		e, err := Decode(message)
		if err == nil {
			require.Equal(t, string(message), string(e.Append(nil)))
		}
	})
}
