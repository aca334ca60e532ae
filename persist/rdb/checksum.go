package rdb

import "hash/crc64"

// jonesTable is of the polynomial that Redis uses, in reversed order of bits.
var jonesTable = crc64.MakeTable(0x95ac9329ac4bc9b5)

// checksum adds b to a CRC-64, which begins with 0. Unlike that of the standard library it is not inverted.
func checksum(crc uint64, b []byte) uint64 { return ^crc64.Update(^crc, jonesTable, b) }
