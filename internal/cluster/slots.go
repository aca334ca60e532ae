package cluster

import (
	"bytes"

	"github.com/atomredis/atomredis/internal/command"
)

const (
	// Slots is how many slots the keys of a cluster are divided into.
	Slots = 16384
	// NoSlot is the slot of commands without keys.
	NoSlot = -1
)

// crcTables are those of CRC-16/XMODEM: polynomial x^16 + x^12 + x^5 + 1, highest bit first. The first table is for
// the last byte of a group of four, the next one for the byte before, and so on: so four bytes are looked up at
// once.
var crcTables = func() (tables [4][256]uint16) {
	for i := range 256 {
		crc := uint16(i) << 8
		for range 8 {
			carry := crc & 0x8000
			if crc <<= 1; carry != 0 {
				crc ^= 0x1021
			}
		}
		tables[0][i] = crc
	}
	for k := range tables[1:] {
		for i, crc := range tables[k] {
			tables[k+1][i] = crc<<8 ^ tables[0][crc>>8]
		}
	}
	return tables
}()

// SlotOf returns the slot of a key. If the key has a non-empty tag in braces, only the tag counts: from the first
// opening brace to the next closing one.
func SlotOf(key []byte) int {
	if open := bytes.IndexByte(key, '{'); open >= 0 {
		if n := bytes.IndexByte(key[open+1:], '}'); n > 0 {
			key = key[open+1 : open+1+n]
		}
	}
	crc, t := uint16(0), &crcTables
	for ; len(key) >= 4; key = key[4:] {
		crc = t[3][byte(crc>>8)^key[0]] ^ t[2][byte(crc)^key[1]] ^ t[1][key[2]] ^ t[0][key[3]]
	}
	for _, b := range key {
		crc = crc<<8 ^ t[0][byte(crc>>8)^b]
	}
	return int(crc % Slots)
}

// SlotOfKeys returns the slot of the command's keys, shard channels included, or NoSlot if it has none; ok is false
// if they are in different slots. The number of arguments fits the command.
//
// Derived keys do not count.
func SlotOfKeys(cmd *command.Command, args [][]byte) (slot int, ok bool) {
	slot, ok = NoSlot, true
	use := func(key []byte) {
		switch n := SlotOf(key); {
		case slot == NoSlot:
			slot = n
		case slot != n:
			ok = false
		}
	}
	if cmd.KeyIndices != nil {
		for _, i := range cmd.KeyIndices(args) {
			use(args[i])
		}
		return slot, ok
	}
	if cmd.EachKey(args, func(i int, _ *command.KeySpec) bool {
		use(args[i])
		return ok
	}) {
		return slot, ok
	}
	// The arguments do not fit the specs. That may be valid, as in PFMERGE without sources; the keys in the range
	// count.
	slot, ok = NoSlot, true
	first, last, step := cmd.KeyRange()
	if last < 0 {
		last += len(args)
	}
	if first == 0 || last >= len(args) || cmd.Flags&command.MovableKeys != 0 {
		return NoSlot, true
	}
	for i := first; i <= last; i += step {
		use(args[i])
	}
	return slot, ok
}
