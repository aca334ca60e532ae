package objects

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/atomredis/atomredis/persist/journal"
)

// An object is a magic number and blocks. A block is the length of its content, the length of the compressed content, a checksum
// of both and of the compressed content, each of four bytes, and the compressed content. The first block has the header as JSON.
// The last one is empty: an object without it is cut off.
const (
	magic     = "ARARCHV1"
	blockHead = 12
	blockSize = 1 << 20 // of content
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// header is about an object.
type header struct {
	Kind   string `json:"kind"`   // base or log
	Server string `json:"server"` // the version that has written it
	Group  bool   `json:"group"`  // the records are those of a group of servers
}

// DamageError says what is wrong with an object.
type DamageError struct {
	Object string
	Offset int64 // of the damaged block, in bytes
	Reason string
}

func (e *DamageError) Error() string {
	return fmt.Sprintf("%s is damaged at offset %d: %s", e.Object, e.Offset, e.Reason)
}

var coders = sync.OnceValue(func() (c struct {
	*zstd.Encoder
	*zstd.Decoder
}) {
	c.Encoder, _ = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest),
		zstd.WithEncoderCRC(false))
	c.Decoder, _ = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(2*blockSize))
	return c
})

// blockWriter writes an object to w.
type blockWriter struct {
	w     io.Writer
	buf   []byte // content that is not written yet
	block []byte
}

func newBlockWriter(w io.Writer, h header) (*blockWriter, error) {
	b := &blockWriter{w: w}
	if _, err := io.WriteString(w, magic); err != nil {
		return nil, err
	}
	text, err := json.Marshal(h)
	if err == nil {
		err = b.put(text)
	}
	return b, err
}

// put writes a block.
func (b *blockWriter) put(content []byte) error {
	b.block = append(b.block[:0], make([]byte, blockHead)...)
	b.block = coders().EncodeAll(content, b.block)
	stored := b.block[blockHead:]
	binary.LittleEndian.PutUint32(b.block, uint32(len(content)))
	binary.LittleEndian.PutUint32(b.block[4:], uint32(len(stored)))
	binary.LittleEndian.PutUint32(b.block[8:], crc32.Update(crc32.Checksum(b.block[:8], castagnoli), castagnoli, stored))
	_, err := b.w.Write(b.block)
	return err
}

// Write implements io.Writer.
func (b *blockWriter) Write(p []byte) (n int, err error) {
	n = len(p)
	for len(p) > 0 {
		part := p[:min(len(p), blockSize-len(b.buf))]
		b.buf, p = append(b.buf, part...), p[len(part):]
		if len(b.buf) == blockSize {
			if err := b.put(b.buf); err != nil {
				return 0, err
			}
			b.buf = b.buf[:0]
		}
	}
	return n, nil
}

// end writes what is left, and the block at the end.
func (b *blockWriter) end() error {
	if len(b.buf) > 0 {
		if err := b.put(b.buf); err != nil {
			return err
		}
	}
	return b.put(nil)
}

// blockReader reads the content of an object.
type blockReader struct {
	r       io.Reader
	name    string
	header  header
	offset  int64 // of the next block
	content []byte
	rest    []byte // the part of content that is not read yet
	stored  []byte
	err     error
}

// newBlockReader reads the header of an object.
func newBlockReader(name string, r io.Reader) (*blockReader, error) {
	b := &blockReader{r: r, name: name}
	head := make([]byte, len(magic))
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, b.cut(err)
	}
	if string(head) != magic {
		return nil, b.damage("it does not begin like an object of an archive")
	}
	b.offset = int64(len(magic))
	if err := b.next(); err != nil {
		if err == io.EOF {
			err = b.damage("the header is missing")
		}
		return nil, err
	}
	if err := json.Unmarshal(b.rest, &b.header); err != nil {
		return nil, b.damage("the header: " + err.Error())
	}
	b.rest = nil
	return b, nil
}

func (b *blockReader) damage(reason string) error { return &DamageError{b.name, b.offset, reason} }

// cut returns the error for an object that ends early, or cannot be read.
func (b *blockReader) cut(err error) error {
	if err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) {
		return b.damage("it is cut off")
	}
	return fmt.Errorf("%s: %w", b.name, err)
}

// next reads a block; the error is io.EOF at the end.
func (b *blockReader) next() error {
	var head [blockHead]byte
	if _, err := io.ReadFull(b.r, head[:]); err != nil {
		return b.cut(err)
	}
	size, length := binary.LittleEndian.Uint32(head[:]), binary.LittleEndian.Uint32(head[4:])
	if size > blockSize || length > 2*blockSize {
		return b.damage("a block has an impossible length")
	}
	if cap(b.stored) < int(length) {
		b.stored = make([]byte, length)
	}
	b.stored = b.stored[:length]
	if _, err := io.ReadFull(b.r, b.stored); err != nil {
		return b.cut(err)
	}
	if crc32.Update(crc32.Checksum(head[:8], castagnoli), castagnoli, b.stored) != binary.LittleEndian.Uint32(head[8:]) {
		return b.damage("a checksum is wrong")
	}
	content, err := coders().DecodeAll(b.stored, b.content[:0])
	if err != nil || len(content) != int(size) {
		return b.damage("a block cannot be decompressed")
	}
	if size == 0 {
		var more [1]byte
		switch n, err := io.ReadFull(b.r, more[:]); {
		case n > 0:
			b.offset += blockHead + int64(length)
			return b.damage("something follows its end")
		case err != io.EOF:
			return b.cut(err)
		}
		return io.EOF
	}
	b.offset += blockHead + int64(length)
	b.content, b.rest = content, content
	return nil
}

// Read implements io.Reader.
func (b *blockReader) Read(p []byte) (int, error) {
	for len(b.rest) == 0 {
		if b.err == nil {
			b.err = b.next()
		}
		if b.err != nil {
			return 0, b.err
		}
	}
	n := copy(p, b.rest)
	b.rest = b.rest[n:]
	return n, nil
}

// recordHead is the length of what precedes a record's commands: its time, the place after it, and their length.
const recordHead = 8 + 4 + 8 + 4 + 4

// appendRecord appends the form of a record in a piece.
func appendRecord(b []byte, e *journal.Entry) []byte {
	b = binary.LittleEndian.AppendUint64(b, uint64(e.Now))
	b = binary.LittleEndian.AppendUint32(b, e.After.Mark)
	b = binary.LittleEndian.AppendUint64(b, e.After.LSN)
	b = binary.LittleEndian.AppendUint32(b, e.After.Within)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(e.Commands)))
	return append(b, e.Commands...)
}

// record reads a record, valid until the next call; the error is io.EOF after the last one.
func (b *blockReader) record(buf *[]byte) (e journal.Entry, err error) {
	var head [recordHead]byte
	n, err := io.ReadFull(b, head[:])
	if err == io.EOF && n == 0 {
		return e, io.EOF
	}
	if err != nil {
		return e, b.within(err)
	}
	e.Now = int64(binary.LittleEndian.Uint64(head[:]))
	e.After = journal.Place{Mark: binary.LittleEndian.Uint32(head[8:]), LSN: binary.LittleEndian.Uint64(head[12:]),
		Within: binary.LittleEndian.Uint32(head[20:])}
	length := binary.LittleEndian.Uint32(head[24:])
	if length > math.MaxInt32 {
		return e, b.damage("a record has an impossible length")
	}
	if uint32(cap(*buf)) < length {
		*buf = make([]byte, length)
	}
	e.Commands = (*buf)[:length]
	if _, err := io.ReadFull(b, e.Commands); err != nil {
		return e, b.within(err)
	}
	return e, nil
}

// within returns the error for a record that ends early.
func (b *blockReader) within(err error) error {
	if err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) {
		return b.damage("a record is cut off")
	}
	return err
}
