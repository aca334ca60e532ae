package atom

import (
	"crypto/rand"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/atomredis/atomredis/internal/protocols/atom/keys"
)

// The names and numbers that all elements of a system share, whatever language they are written in.

// Language and Version are an element's answer to the command "version".
const (
	Language = "Go"
	Version  = "1.0.0"
)

// Defaults of operations.
const (
	DefaultMaxLen           = 1024             // least number of entries that a stream keeps
	DefaultAckTimeout       = time.Second      // how long a caller waits for the acknowledgement of a command
	DefaultResponseTimeout  = time.Second      // how long a caller waits for the response after the acknowledgement
	DefaultReferenceTimeout = 10 * time.Second // how long a reference lives
	DefaultRetryInterval    = 5 * time.Second  // pause of WaitForElementsHealthy between two rounds
	DefaultQueueMaxLen      = 1000             // largest number of items in a queue
)

// NoTimeout stands for a key that does not expire.
const NoTimeout time.Duration = -1

// The commands that every element answers.
const (
	versionCommand     = "version"
	healthcheckCommand = "healthcheck"
	commandListCommand = "command_list"
)

const (
	logStream       = keys.Log
	referencePrefix = keys.Reference
	parameterPrefix = keys.Parameter
	serField        = "ser"
	overrideField   = "override"
)

func responseKey(element string) string  { return keys.Response + element }
func commandKey(element string) string   { return keys.Command + element }
func groupName(element string) string    { return keys.Group + element }
func counterOfKey(element string) string { return keys.Counter + element }

// streamKey returns the key of a data stream. The key of a stream without an element, such as the log, is its name.
func streamKey(element, stream string) string {
	if element == "" {
		return stream
	}
	return keys.Stream + element + ":" + stream
}

// globQuoter escapes a name for use in a pattern of SCAN.
var globQuoter = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`)

// uuid returns a random UUID (version 4).
func uuid() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// milliseconds rounds up, so that a positive time never becomes 0, which means none.
func milliseconds(d time.Duration) int64 {
	ms := d.Milliseconds()
	if d > time.Duration(ms)*time.Millisecond {
		ms++
	}
	return ms
}

// parseMilliseconds reads a timeout that another element has sent. A number that does not fit becomes the longest
// Duration.
func parseMilliseconds(text string) (time.Duration, error) {
	ms, err := strconv.ParseInt(text, 10, 64)
	if err != nil || ms < 0 {
		return 0, fmt.Errorf("the timeout %q is not a number of milliseconds", text)
	}
	return time.Duration(min(ms, math.MaxInt64/int64(time.Millisecond))) * time.Millisecond, nil
}
