package rdb

import "hash/crc64"

// jonesTable belongs to Redis's polynomial, in reversed bit order.
var jonesTable = crc64.MakeTable(0x95ac9329ac4bc9b5)

// checksum adds b to a CRC-64, which starts at 0. Unlike the standard library's it is not inverted.
func checksum(crc uint64, b []byte) uint64 { return ^crc64.Update(^crc, jonesTable, b) }
