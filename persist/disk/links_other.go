//go:build !unix

package disk

import "os"

// onlyName reports whether a file certainly has no other name; here that is never certain.
func onlyName(os.FileInfo) bool { return false }
