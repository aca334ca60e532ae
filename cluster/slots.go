package cluster

import (
	"bytes"

	"github.com/atomredis/atomredis/command"
)

const (
	// Slots is how many slots the keys of a cluster are divided into.
	Slots = 16384
	// NoSlot is the slot of commands without keys.
	NoSlot = -1
)

// crcTable is that of CRC-16/XMODEM: polynomial x^16 + x^12 + x^5 + 1, highest bit first.
var crcTable = func() (table [256]uint16) {
	for i := range table {
		crc := uint16(i) << 8
		for range 8 {
			carry := crc & 0x8000
			if crc <<= 1; carry != 0 {
				crc ^= 0x1021
			}
		}
		table[i] = crc
	}
	return table
}()

// SlotOf returns the slot of a key. If the key has braces with something between them, that decides alone: from
// the first opening brace to the first closing one behind it.
func SlotOf(key []byte) int {
	if open := bytes.IndexByte(key, '{'); open >= 0 {
		if n := bytes.IndexByte(key[open+1:], '}'); n > 0 {
			key = key[open+1 : open+1+n]
		}
	}
	crc := uint16(0)
	for _, b := range key {
		crc = crc<<8 ^ crcTable[byte(crc>>8)^b]
	}
	return int(crc % Slots)
}

// SlotOfKeys returns the slot of the command's keys, shard channels included, or NoSlot if it has none; ok is false if
// they are of different slots. The arity fits.
//
// Keys that commands use without having them among their arguments do not count. Those commands are our own, and what
// they do is no matter of slots where one node has them all.
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
	// The arguments do not fit the specs, which need not be wrong: PFMERGE without sources. What is in the range of keys
	// counts.
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
