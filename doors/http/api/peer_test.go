package api

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// parts is a ResponseWriter that counts the bytes written under each deadline.
type parts struct {
	*httptest.ResponseRecorder
	sizes []int
}

func (p *parts) SetWriteDeadline(time.Time) error {
	p.sizes = append(p.sizes, 0)
	return nil
}

func (p *parts) Write(b []byte) (int, error) {
	p.sizes[len(p.sizes)-1] += len(b)
	return p.ResponseRecorder.Write(b)
}

// A peer has the time of sendTime for each part of a large value, not for the whole.
func TestEachPartOfAnAnswerHasItsDeadline(t *testing.T) {
	p := &parts{ResponseRecorder: httptest.NewRecorder()}
	value := make([]byte, 3*maxPart+1)
	for i := range value {
		value[i] = byte(i % 251)
	}
	n, err := peer{p, http.NewResponseController(p)}.Write(value)
	require.NoError(t, err)
	require.Equal(t, len(value), n)
	require.Equal(t, []int{maxPart, maxPart, maxPart, 1}, p.sizes)
	require.Equal(t, value, p.Body.Bytes())
}
