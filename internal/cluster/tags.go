package cluster

import "sync"

// tagLetters are the letters of tags, in the order in which they are tried.
const tagLetters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// tags has the tag of each slot: the first of the shortest texts that hash to it.
var tags = sync.OnceValue(func() *[Slots]string {
	list, left := new([Slots]string), Slots
	level := []string{""}
	for left > 0 {
		var next []string
		for _, prefix := range level {
			for _, c := range tagLetters {
				text := prefix + string(c)
				next = append(next, text)
				if slot := SlotOf([]byte(text)); list[slot] == "" {
					list[slot] = text
					left--
				}
			}
		}
		level = next
	}
	return list
})

// TagOf returns a short text that hashes to the slot, alone or in the braces of a key.
func TagOf(slot int) string { return tags()[slot] }
