package peer

import (
	"encoding/binary"
	"fmt"
)

// Binary payloads consist of numbers, which are uvarints, and of parts, which are bytes after their length.

var errPart = fmt.Errorf("%w: truncated", ErrFrame)

// AppendPart appends a part.
func AppendPart(b, part []byte) []byte {
	return append(binary.AppendUvarint(b, uint64(len(part))), part...)
}

// Number returns the number at the beginning of a payload, and the rest.
func Number(b []byte) (n uint64, rest []byte, err error) {
	n, size := binary.Uvarint(b)
	if size <= 0 {
		return 0, nil, errPart
	}
	return n, b[size:], nil
}

// Part returns the part at the beginning of a payload, and the rest. Both are slices of the payload.
func Part(b []byte) (part, rest []byte, err error) {
	n, b, err := Number(b)
	if err == nil && n > uint64(len(b)) {
		err = errPart
	}
	if err != nil {
		return nil, nil, err
	}
	return b[:n:n], b[n:], nil
}
