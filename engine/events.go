package engine

import "strings"

// EventClass is a set of classes of keyspace events, as notify-keyspace-events names them.
type EventClass uint32

// The classes of events. EventKeyspace and EventKeyevent choose the channels, the others the published events.
const (
	EventKeyspace         EventClass = 1 << iota // K
	EventKeyevent                                // E
	EventGeneric                                 // g
	EventString                                  // $
	EventList                                    // l
	EventSet                                     // s
	EventHash                                    // h
	EventZSet                                    // z
	EventExpired                                 // x
	EventEvicted                                 // e
	EventStream                                  // t
	EventKeyMiss                                 // m
	EventModule                                  // d
	EventNew                                     // n
	EventArray                                   // a
	EventSubkeyspace                             // S
	EventSubkeyevent                             // T
	EventSubkeyspaceItem                         // I
	EventSubkeyspaceEvent                        // V
	EventOverwritten                             // o
	EventTypeChanged                             // c
	EventBitmap                                  // b
	EventPathHash                                // p
	// EventEmpty is for the Observer only: a command asked for elements of a key that has none.
	EventEmpty

	// EventNone is the class of events without receivers: of a key that makes room for another.
	EventNone EventClass = 0

	// EventAll is the meaning of A: every class except path hashes, key misses, new keys, and keys that get another value.
	EventAll = EventGeneric | EventString | EventList | EventSet | EventHash | EventZSet | EventExpired |
		EventEvicted | EventStream | EventModule | EventArray | EventBitmap
)

var eventLetters = []struct {
	letter byte
	class  EventClass
}{
	{'A', EventAll}, {'g', EventGeneric}, {'$', EventString}, {'l', EventList}, {'s', EventSet}, {'h', EventHash},
	{'z', EventZSet}, {'x', EventExpired}, {'e', EventEvicted}, {'t', EventStream}, {'d', EventModule}, {'a', EventArray},
	{'b', EventBitmap}, {'p', EventPathHash},
	{'o', EventOverwritten}, {'c', EventTypeChanged}, {'K', EventKeyspace}, {'E', EventKeyevent}, {'m', EventKeyMiss}, {'n', EventNew},
	{'S', EventSubkeyspace}, {'T', EventSubkeyevent}, {'I', EventSubkeyspaceItem}, {'V', EventSubkeyspaceEvent},
}

// EventSubkeys are the channels of events that name the fields of a hash.
const EventSubkeys = EventSubkeyspace | EventSubkeyevent | EventSubkeyspaceItem | EventSubkeyspaceEvent

// ParseEventClasses reads the value of notify-keyspace-events.
func ParseEventClasses(s string) (EventClass, bool) {
	var c EventClass
next:
	for i := range len(s) {
		for _, l := range eventLetters {
			if l.letter == s[i] {
				c |= l.class
				continue next
			}
		}
		return 0, false
	}
	return c, true
}

// String returns the classes as CONFIG GET shows them.
func (c EventClass) String() string {
	var b strings.Builder
	for _, l := range eventLetters {
		if c&l.class == l.class {
			b.WriteByte(l.letter)
			if l.class == EventAll {
				c &^= EventAll
			}
		}
	}
	return b.String()
}

// Observer learns what happens to keys. It is called under the guard that makes the change, so it must be quick and
// must not use the keyspace.
type Observer interface {
	// KeyEvent is called for events whose class is enabled with SetEventClasses. owner is the guard's Owner. The key is
	// valid during the call only.
	KeyEvent(owner any, class EventClass, event string, db int, key string)
	// SubkeyEvent is called after KeyEvent with the fields that the event is about, at least one, if a channel of
	// EventSubkeys is enabled. They and the key are valid during the call only.
	SubkeyEvent(owner any, class EventClass, event string, db int, key string, subkeys [][]byte)
	// KeyChanged is called for every change of a key while Keyspace.ObserveChanges is on.
	KeyChanged(owner any, db int, key string)
	// Flushed is called when all keys of a database (of all databases: db -1) were removed at once.
	Flushed(owner any, db int)
}
