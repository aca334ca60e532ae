package cluster

import "sync"

// tagLetters are what the tags of slots consist of, in the order in which they are tried.
const tagLetters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// tags has a short text for each slot, the first and shortest that hashes to it.
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

// TagOf returns a short text that, as a key or in the braces of one, belongs to the slot.
func TagOf(slot int) string { return tags()[slot] }
