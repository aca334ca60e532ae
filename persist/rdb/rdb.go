// Package rdb is Redis's form of stored data: RDB files, which are read as a stream, and the payloads of DUMP and
// RESTORE, which have one value each. It reads what Redis 2 to 7.4 have written, in every encoding, and writes the
// plain forms, which Redis turns into its small ones as it loads them.
//
// Nothing that is read is believed: memory is taken as bytes arrive, never because a length promises them, and every
// collection is built element by element with the operations of its type.
package rdb

import (
	"errors"
	"fmt"

	"github.com/atomredis/atomredis/engine/hashes"
	"github.com/atomredis/atomredis/engine/lists"
	"github.com/atomredis/atomredis/engine/sets"
	"github.com/atomredis/atomredis/engine/streams"
	"github.com/atomredis/atomredis/engine/zsets"
)

// Limits are those of the small forms that values get as they are read, and of what is checked.
type Limits struct {
	Hash   hashes.Limits
	Set    sets.Limits
	ZSet   zsets.Limits
	List   lists.Limit
	Stream streams.Limits
	// SkipChecksum accepts payloads and files whose checksum is wrong.
	SkipChecksum bool
}

const (
	// Version is the version that is written: that of Redis 7.0.
	Version = 10
	// VersionExpiringFields is the version that is written where fields of hashes expire, which nothing before Redis 7.4
	// knows.
	VersionExpiringFields = 12
	// VersionProducers is the version that is written where streams remember producers, and VersionReleased where entries
	// are pending that were released: those of Redis 8.6 and 8.8.
	VersionProducers = 13
	VersionReleased  = 14
	// Newest is the latest version that is read: that of Redis 8.8.
	Newest = 14
)

// The types of values.
const (
	typeString          = 0
	typeList            = 1
	typeSet             = 2
	typeZSetText        = 3 // scores as text
	typeHash            = 4
	typeZSet            = 5
	typeModuleOld       = 6
	typeModule          = 7
	typeHashZipmap      = 9
	typeListZiplist     = 10
	typeSetIntset       = 11
	typeZSetZiplist     = 12
	typeHashZiplist     = 13
	typeListZiplists    = 14
	typeStream          = 15
	typeHashListpack    = 16
	typeZSetListpack    = 17
	typeListListpacks   = 18
	typeStream2         = 19 // with what groups have read
	typeSetListpack     = 20
	typeStream3         = 21 // with when consumers were active
	typeHashExpireEarly = 22 // of candidates for 7.4, as is 23
	typeHashPackEarly   = 23
	typeHashExpire      = 24
	typeHashPack        = 25
	typeStream4         = 26 // with producers
	typeStream5         = 27 // with pending entries that were released
)

// The opcodes of a file.
const (
	opSlotInfo     = 244
	opFunction     = 245
	opFunctionOld  = 246
	opModuleAux    = 247
	opIdle         = 248
	opFreq         = 249
	opAux          = 250
	opResize       = 251
	opExpireMillis = 252
	opExpire       = 253
	opSelectDB     = 254
	opEOF          = 255
)

// Errors that callers tell apart.
var (
	// ErrCorrupt says that something cannot have been written by Redis.
	ErrCorrupt = errors.New("corrupt data")
	// ErrUnsupported says that something is not understood: a later version, or a value that belongs to a module.
	ErrUnsupported = errors.New("unsupported data")
	// ErrChecksum says that a payload has another checksum, or a later version, than it should.
	ErrChecksum = errors.New("wrong checksum or version")
	// ErrNotFunction says that a payload of libraries has something else.
	ErrNotFunction = errors.New("not a function")
	// errEmpty says that a collection has no elements. Redis does not store such, and skips those that it finds.
	errEmpty = fmt.Errorf("%w: an empty collection", ErrCorrupt)
)

func corrupt(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrCorrupt, fmt.Sprintf(format, args...))
}
