// Package lsm keeps the data set in Pebble, as package store specifies: heads of keys, large values, and the parts of
// collections. Only checkpoints change it, and each is atomic.
//
// # Keys in Pebble
//
//	k space key    the head: type, deadline, and the value if its stored form has up to 256 bytes
//	v space key    a larger value that is stored whole
//	u number name  a part of a value; of a string over 1 MiB a piece of 64 KiB, under the place of its first byte
//	m              meta: the position of the journal, spaces, numbers; w has it once more
//
// A space is the content of a database: SWAPDB exchanges two numbers, FLUSHDB takes a new one and drops the old.
// Numbers are never reused. Strings that earlier versions stored in one piece can be read, and stay so until they
// change.
//
// # Checkpoints
//
// A checkpoint writes sorted tables beside the data, and one Ingest adds them: it is atomic and durable. Pebble's own
// log is not used. Errors that are fatal to Pebble close a fence around its files (fence.go).
//
// # Opening
//
// A directory is refused where Pebble would create an empty store in place of a damaged one: tables without the marker
// of their list, or the folder checkpoint without data. What the store created itself can be removed again under its
// lock (made.go). On a full disk Pebble, which writes when it opens, is opened read-only (openToRead).
package lsm
