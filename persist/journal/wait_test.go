package journal

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestWhatClientsWaitForIsTold(t *testing.T) {
	for policy, want := range map[Policy][]Wait{Always: {WaitWrite, WaitSync}, EverySec: nil, No: nil} {
		var mu sync.Mutex
		var told []Wait
		delays := 0
		j := open(t, Options{FS: newFS(t), Policy: policy, Waited: func(forWhat Wait, took time.Duration) {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, forWhat)
		}, Delay: func() time.Duration {
			mu.Lock()
			defer mu.Unlock()
			delays++
			return time.Nanosecond
		}})
		j.Append(0, []byte("one"))
		require.NoError(t, j.Sync(context.Background()))
		mu.Lock()
		require.Equal(t, want, told)
		require.Positive(t, delays)
		mu.Unlock()
		require.NoError(t, j.Close())
	}
}
