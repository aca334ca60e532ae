package config

import (
	"errors"
	"fmt"
	"strings"

	"github.com/atomredis/atomredis/resp"
)

// This file has settings of the process: its service manager, how it ends, and destinations of its log besides a
// file. The program applies them.

// Supervision is the service manager that is notified when the server is ready.
type Supervision uint8

// The values of supervised.
const (
	SupervisedNo Supervision = iota
	SupervisedUpstart
	SupervisedSystemd
	SupervisedAuto // the one that has started the process, if any
)

// String returns its word in INFO.
func (s Supervision) String() string {
	switch s {
	case SupervisedUpstart:
		return "upstart"
	case SupervisedSystemd:
		return "systemd"
	}
	return "no"
}

// OOMScore says how oom-score-adj-values are used.
type OOMScore uint8

// The values of oom-score-adj.
const (
	OOMScoreNo       OOMScore = iota
	OOMScoreYes               // the same as relative
	OOMScoreRelative          // they are added to the process's initial score
	OOMScoreAbsolute
)

// maxOOMScore is the largest of oom-score-adj-values. The system's limit is half of it.
const maxOOMScore = 2000

var errOOMScores = fmt.Errorf("Invalid oom-score-adj-values, elements must be between -%d and %d.", maxOOMScore,
	maxOOMScore)

func parseOOMScores(s *Settings, words []string) error {
	if len(words) != len(s.Process.OOMScoreAdjValues) {
		return ErrWordCount
	}
	var values [3]int
	for i, w := range words {
		n, ok := resp.ParseInt([]byte(w))
		if !ok || n < -maxOOMScore || n > maxOOMScore {
			return errOOMScores
		}
		values[i] = int(n)
	}
	s.Process.OOMScoreAdjValues = values
	return nil
}

func showOOMScores(s *Settings) string {
	v := s.Process.OOMScoreAdjValues
	return fmt.Sprintf("%d %d %d", v[0], v[1], v[2])
}

// ErrOOMScore says that the system refused the score.
var ErrOOMScore = errors.New("Failed to apply new oom_score_adj configuration, check server logs.")

// SyslogFacility is a facility of the system's log: -1 is user, others are local0 to local7.
type SyslogFacility int8

func syslogFacilities() []option[SyslogFacility] {
	list := []option[SyslogFacility]{{"user", -1}}
	for i := range 8 {
		list = append(list, option[SyslogFacility]{fmt.Sprintf("local%d", i), SyslogFacility(i)})
	}
	return list
}

// ShutdownFlags are the options of SHUTDOWN for a signal.
type ShutdownFlags uint8

// The values of shutdown-on-sigint and shutdown-on-sigterm.
const (
	ShutdownSave ShutdownFlags = 1 << iota
	ShutdownNoSave
	ShutdownNow
	ShutdownForce
)

var (
	shutdownWords       = []string{"default", "save", "nosave", "now", "force"}
	errShutdownWords    = unknownWord(shutdownWords)
	errShutdownConflict = errors.New("shutdown options SAVE and NOSAVE can't be used simultaneously")
)

func (f *ShutdownFlags) parse(words []string) error {
	if len(words) == 0 {
		return errShutdownWords
	}
	var flags ShutdownFlags
	for _, w := range words {
		i := indexFold(shutdownWords, w)
		if i < 0 {
			return errShutdownWords
		}
		flags |= 1 << i >> 1
	}
	if flags&ShutdownSave != 0 && flags&ShutdownNoSave != 0 {
		return errShutdownConflict
	}
	*f = flags
	return nil
}

// String returns the value as CONFIG GET shows it.
func (f ShutdownFlags) String() string {
	var words []string
	for i, w := range shutdownWords[1:] {
		if f&(1<<i) != 0 {
			words = append(words, w)
		}
	}
	if len(words) == 0 {
		return shutdownWords[0]
	}
	return strings.Join(words, " ")
}

// LogFormat is the format of lines in the log.
type LogFormat uint8

// The formats of log-format.
const (
	LogLogfmt LogFormat = iota
	LogJSON
	LogText           // readable: time, level, message, attributes
	LogLegacy         // as Redis writes it, with the attributes at the end
	LogFormats = iota // how many there are
)

// LogTimestamps is the format of times in the log.
type LogTimestamps uint8

// The forms of log-timestamp-format.
const (
	TimestampsLegacy LogTimestamps = iota // the usual one of the log format
	TimestampsISO8601
	TimestampsMilliseconds // since 1970
)
