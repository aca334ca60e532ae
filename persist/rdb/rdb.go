// Package rdb is Redis's form of stored data: RDB files, which are read as a stream, and the payloads of DUMP and
// RESTORE, which have one value each. It reads every encoding of Redis 2 to 7.4, later forms up to Newest, and those of
// Valkey; it writes the plain forms, which Redis converts to its small ones when it loads them.
//
// Input is never trusted: memory is allocated as bytes arrive, not by promised lengths, and every collection is built
// element by element with the operations of its type.
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

// Limits are the limits of the small forms of values that are read, and of checks.
type Limits struct {
	Hash   hashes.Limits
	Set    sets.Limits
	ZSet   zsets.Limits
	List   lists.Limit
	Stream streams.Limits
	// SkipChecksum accepts payloads and files with a wrong checksum.
	SkipChecksum bool
}

const (
	// Version is the version written: that of Redis 7.0.
	Version = 10
	// VersionExpiringFields is the version written for hashes with expiring fields, which first appeared in Redis 7.4.
	VersionExpiringFields = 12
	// VersionProducers is the version written for streams that remember producers, and VersionReleased for released
	// pending entries: those of Redis 8.6 and 8.8.
	VersionProducers = 13
	VersionReleased  = 14
	// VersionArrays is the version written for arrays: that of Redis 8.8.
	VersionArrays = 14
	// VersionExpiringMembers is the version written for sets with expiring members, which first appeared in Redis 8.12.
	VersionExpiringMembers = 17
	// VersionBitmaps is the version written for compressed bitmaps: that of Redis 8.12.
	VersionBitmaps = 17
	// VersionBlessed is the version written for blessed keys, which first appeared in Redis 8.12.
	VersionBlessed = 17
	// Newest is the latest readable version: that of Redis 8.12.
	Newest = 17
	// Valkey 9 and later have versions of their own, from OldestValkey on. Files up to NewestValkey are read as long as
	// they have only the forms of version 80.
	OldestValkey = 80
	NewestValkey = 89
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
	typeStream2         = 19 // with the groups' counts of read entries
	typeSetListpack     = 20
	typeStream3         = 21 // with the consumers' active times
	typeHashExpireEarly = 22 // of candidates for 7.4, like 23
	typeHashValkey      = 22 // of Valkey: with deadlines of fields
	typeHashPackEarly   = 23
	typePathHash        = 23 // of Valkey
	typeHashExpire      = 24
	typeHashPack        = 25
	typeStream4         = 26 // with producers
	typeStream5         = 27 // with released pending entries
	typeArray           = 28
	// Hashes with the names of their fields, for payloads, and with a template of the file. The values are in a listpack
	// in the first of each.
	typeHashNamedPack    = 29
	typeHashTemplatePack = 30
	typeHashNamed        = 31
	typeHashTemplate     = 32
	typeBitmap           = 33
	typeSetPack          = 34 // a listpack with deadlines of members
	typeSetExpire        = 35 // with deadlines of members
)

// The opcodes of a file.
const (
	opBlessed      = 241 // the next key is blessed
	opTemplate     = 242 // names of the fields of hashes
	opSlotImport   = 243 // of Valkey
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

// Errors that callers distinguish.
var (
	// ErrCorrupt says that Redis cannot have written the data.
	ErrCorrupt = errors.New("corrupt data")
	// ErrUnsupported says that the data is from a later version, or belongs to a module.
	ErrUnsupported = errors.New("unsupported data")
	// ErrChecksum says that a payload has a wrong checksum or a later version.
	ErrChecksum = errors.New("wrong checksum or version")
	// ErrNotFunction says that a payload of libraries has other data.
	ErrNotFunction = errors.New("not a function")
	// errEmpty says that a collection has no elements. Redis does not store empty ones, and skips those that it finds.
	errEmpty = fmt.Errorf("%w: an empty collection", ErrCorrupt)
)

// UnknownType is the error for a value of a module whose type, or version of it, does not exist here.
type UnknownType struct {
	Module  string // the name of the type, nine letters
	Version uint64

	marked bool // the end of the value is marked
}

// Error implements error.
func (e *UnknownType) Error() string {
	return fmt.Sprintf("%v: a value of the module type %q, version %d", ErrUnsupported, e.Module, e.Version)
}

// Unwrap makes it an ErrUnsupported.
func (e *UnknownType) Unwrap() error { return ErrUnsupported }

func corrupt(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrCorrupt, fmt.Sprintf(format, args...))
}
