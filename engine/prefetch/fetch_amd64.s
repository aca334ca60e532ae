#include "textflag.h"

// func fetch(first *uintptr, n int)
TEXT ·fetch(SB), NOSPLIT, $0-16
	MOVQ first+0(FP), AX
	MOVQ n+8(FP), CX
next:
	MOVQ       (AX), DX
	PREFETCHT0 (DX)
	ADDQ       $8, AX
	DECQ       CX
	JNZ        next
	RET
