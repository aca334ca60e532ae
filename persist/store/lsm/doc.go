// Package lsm keeps the data set in Pebble, as package store wants it: heads of keys, large values, and the parts of
// collections. It is changed by checkpoints alone, each of which takes place as a whole or not at all.
//
// # Keys in Pebble
//
//	k space key    the head: type, deadline, and the value if its stored form has up to 256 bytes
//	v space key    a larger value that is stored whole
//	u number name  a part of a value; of a string over 1 MiB a piece of 64 KiB, under the place of its first byte
//	m              meta: the position of the journal, spaces, numbers; w has it once more
//
// A space is the content of a database: SWAPDB exchanges two numbers, FLUSHDB takes a new one and drops the old.
// Numbers are never used again. What earlier versions stored in one piece is read, and stays so until it changes.
//
// # Checkpoints
//
// What a checkpoint writes is put into sorted tables beside the data, which one Ingest takes in: it is atomic and
// durable. Pebble's own log is not used. What Pebble treats as fatal closes a fence in front of its files (fence.go).
//
// # Opening
//
// A directory is refused where Pebble would make an empty store in its place: tables without the marker of their
// list, or the folder checkpoint without data. What the store made itself can be removed again under its lock
// (made.go). On a full disk Pebble, which writes when it opens, is opened to be read (openToRead).
package lsm
