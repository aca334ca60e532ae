package transcript

import (
	"testing"

	"github.com/stretchr/testify/require"
)

const ofReleases = `@since 7.0
> BITCOUNT none 1
0
since 7.4 -ERR syntax error
> BLPOP l 0
...
since 7.2 ["l" "v"]
push["message" "c" "m"]
since 8.0 nil
`

func TestReplyIsThatOfTheLastReleaseThatTheServerHas(t *testing.T) {
	transcript, err := Parse("test", ofReleases)
	require.NoError(t, err)
	require.Equal(t, ofReleases, transcript.String())
	require.Equal(t, Release{7, 0}, transcript.Since)

	count, pop := transcript.Steps[1], transcript.Steps[2]
	require.Equal(t, "0", count.repliesOf(Release{7, 0}).Want[0].String())
	require.Equal(t, "0", count.repliesOf(Release{7, 2}).Want[0].String())
	require.Equal(t, "-ERR syntax error", count.repliesOf(Release{7, 4}).Want[0].String())
	require.Equal(t, "-ERR syntax error", count.repliesOf(newest).Want[0].String())

	require.True(t, pop.repliesOf(Release{6, 2}).Pending)
	require.Len(t, pop.repliesOf(Release{7, 4}).Want, 2)
	require.False(t, pop.repliesOf(Release{7, 4}).Pending)
	require.Equal(t, "nil", pop.repliesOf(Release{10, 0}).Want[0].String())
}

func TestReleasesThatAreNotInOrderAreRefused(t *testing.T) {
	for _, text := range []string{
		"> GET k\nnil\nsince 7.4 nil\nsince 7.2 nil\n",
		"> GET k\nnil\nsince 7.4 nil\nsince 7.4 nil\n",
		"> GET k\nnil\nsince 7 nil\n",
		"> GET k\nnil\n@since 7.4\n",
		"@since 7\n> GET k\nnil\n",
		"@since 7.2\nnil\n",
	} {
		_, err := Parse("test", text)
		require.Error(t, err, text)
	}
}
