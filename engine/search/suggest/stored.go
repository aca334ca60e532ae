package suggest

import (
	"encoding/binary"
	"errors"
	"math"
	"unicode/utf8"

	"github.com/atomredis/atomredis/engine/paged"
)

// A dictionary is stored as a head, which is the format, and an item per suggestion: its name is the text, its data the
// score in four bytes and the payload.

// format is the first byte of a head.
const format = 1

// A dictionary beyond these limits is stored in parts.
const (
	maxSmallItems = 64
	maxSmallBytes = 1 << 14
)

var (
	errHead = errors.New("suggest: the stored head is malformed")
	errItem = errors.New("suggest: a stored item is malformed")
)

// Large reports whether the dictionary must be stored in parts.
func (d *Dict) Large() bool { return d.Len() > maxSmallItems || d.bytes > maxSmallBytes }

// AppendHead appends the stored form of everything except the suggestions.
func (d *Dict) AppendHead(dst []byte) []byte { return append(dst, format) }

// AppendItem implements paged.Items.
func (d *Dict) AppendItem(dst []byte, name string) (out []byte, ok bool) {
	e := d.find(name)
	if e == nil {
		return dst, false
	}
	dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(e.score))
	if e.payload != nil {
		dst = append(dst, *e.payload...)
	}
	return dst, true
}

// ItemsFrom implements paged.Items.
func (d *Dict) ItemsFrom(name string, fn func(name string) bool) {
	d.byText.Ascend(func(e *entry) bool { return e.text < name }, func(e *entry) bool { return fn(e.text) })
}

// Restore adds a suggestion that was stored elsewhere; its text must be new. It fails if the suggestion is invalid.
func (d *Dict) Restore(text []byte, score float32, payload []byte) error {
	if len(text) == 0 || len(text) > maxBytes || utf8.RuneCount(text) > maxRunes || d.find(string(text)) != nil {
		return errItem
	}
	d.NoteItem(text)
	d.put(string(text), score, payload)
	return nil
}

func decodeHead(head []byte) (*Dict, error) {
	if len(head) != 1 || head[0] != format {
		return nil, errHead
	}
	return New(), nil
}

func addStored(d *Dict, name, data []byte) error {
	if len(data) < 4 {
		return errItem
	}
	return d.Restore(name, math.Float32frombits(binary.LittleEndian.Uint32(data)), data[4:])
}

// NewLoader returns a loader that builds a dictionary from its parts.
func NewLoader() *paged.Loader[*Dict] { return &paged.Loader[*Dict]{Head: decodeHead, Item: addStored} }

// DecodeBlob returns the dictionary that AppendBlob has stored, or an error if b is not one. It does not keep b.
func DecodeBlob(b []byte) (*Dict, error) { return NewLoader().Decode(b) }
