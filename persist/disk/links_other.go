//go:build !unix

package disk

import "os"

// onlyName reports whether a file is known to have no other name; here that is never known.
func onlyName(os.FileInfo) bool { return false }
