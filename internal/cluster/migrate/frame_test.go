package migrate

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// framesOf are frames of all kinds.
func framesOf() []frame {
	return []frame{
		{kind: frameState, db: 3, deadline: 1 << 42, key: []byte("key"), body: []byte(strings.Repeat("value", 30_000))},
		{kind: frameState, deadline: -1, key: []byte{}, body: []byte{}}, {kind: frameGone, db: 1 << 30, key: []byte("k\x00")},
		{kind: frameRound, round: 1<<64 - 1}, {kind: frameLast, round: 7}, {kind: frameExported, body: []byte(`{"ID":"a"}`)},
		{kind: frameError, body: []byte("why")},
	}
}

func written(t *testing.T, list []frame) []byte {
	var b bytes.Buffer
	w := bufio.NewWriter(&b)
	for i := range list {
		require.NoError(t, list[i].write(w))
	}
	require.NoError(t, w.Flush())
	return b.Bytes()
}

// framesIn reads frames until one is not right.
func framesIn(b []byte) (list []frame, err error) {
	r := bufio.NewReader(bytes.NewReader(b))
	for {
		f, err := readFrame(r)
		if err != nil {
			return list, err
		}
		list = append(list, f)
	}
}

// requireFrames compares frames, for which no bytes are as good as none.
func requireFrames(t *testing.T, want, got []frame) {
	require.Len(t, got, len(want))
	for i, w := range want {
		g := got[i]
		require.True(t, bytes.Equal(w.key, g.key) && bytes.Equal(w.body, g.body), "frame %d", i)
		w.key, w.body, g.key, g.body = nil, nil, nil, nil
		require.Equal(t, w, g, "frame %d", i)
	}
}

func TestFramesAreReadAsTheyWereWritten(t *testing.T) {
	b := written(t, framesOf())
	got, err := framesIn(b)
	require.Equal(t, io.EOF, err)
	requireFrames(t, framesOf(), got)
	short := written(t, framesOf()[1:])
	for n := range short { // what breaks off is an error, and not a shorter frame
		got, err := framesIn(short[:n])
		require.True(t, errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF), "%v", err)
		requireFrames(t, framesOf()[1:1+len(got)], got)
	}
	for _, wrong := range []string{"x", "g\xff\xff\xff\xff\x7fk", "g\x00\xff\xff\xff\xff\xff\x7f", "s\x00" + strings.Repeat("\xff", 11)} {
		_, err := framesIn([]byte(wrong))
		require.NotErrorIs(t, err, io.EOF, "%q", wrong)
		require.Error(t, err)
	}
}

func FuzzFrames(f *testing.F) {
	for _, one := range framesOf() {
		var b bytes.Buffer
		w := bufio.NewWriter(&b)
		if err := errors.Join(one.write(w), w.Flush()); err != nil {
			f.Fatal(err)
		}
		if b.Len() < 1000 { // what is longer is in the test
			f.Add(b.Bytes())
		}
	}
	f.Add([]byte("s\x00\x00\xff\xff\xff\xff\x0fshort"))
	f.Add([]byte("r\x01l\x02g\x00\x01kd\x02{}"))
	f.Fuzz(func(t *testing.T, input []byte) {
		list, err := framesIn(input)
		if err == nil {
			t.Fatal("there is no end")
		}
		again, err := framesIn(written(t, list))
		require.Equal(t, io.EOF, err)
		requireFrames(t, list, again)
	})
}
