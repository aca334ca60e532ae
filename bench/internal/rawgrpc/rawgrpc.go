// Package rawgrpc handles gRPC messages as bytes, so that clients of different services cost the same.
package rawgrpc

import "google.golang.org/protobuf/encoding/protowire"

// Codec is the codec of messages that are *[]byte.
type Codec struct{}

// Marshal implements encoding.Codec.
func (Codec) Marshal(v any) ([]byte, error) { return *v.(*[]byte), nil }

// Name implements encoding.Codec.
func (Codec) Name() string { return "proto" }

// Unmarshal implements encoding.Codec.
func (Codec) Unmarshal(b []byte, v any) error {
	*v.(*[]byte) = append((*v.(*[]byte))[:0], b...)
	return nil
}

// Field appends a field of bytes to a message.
func Field[T string | []byte](b []byte, n protowire.Number, value T) []byte {
	b = protowire.AppendTag(b, n, protowire.BytesType)
	return protowire.AppendString(b, string(value))
}
