#include "textflag.h"

// X0 has the first four sums, X1 the others.

// func dotFloats(a, b []float32, sums *[4]float32)
TEXT ·dotFloats(SB), NOSPLIT, $0-56
	MOVQ  a_base+0(FP), AX
	MOVQ  a_len+8(FP), CX
	MOVQ  b_base+24(FP), BX
	MOVQ  sums+48(FP), DX
	XORPS X0, X0
	XORPS X1, X1
	SUBQ  $8, CX
	JB    end
next:
	MOVUPS (AX), X2
	MOVUPS 16(AX), X3
	MOVUPS (BX), X4
	MOVUPS 16(BX), X5
	MULPS  X4, X2
	MULPS  X5, X3
	ADDPS  X2, X0
	ADDPS  X3, X1
	ADDQ   $32, AX
	ADDQ   $32, BX
	SUBQ   $8, CX
	JAE    next
end:
	ADDPS  X1, X0
	MOVUPS X0, (DX)
	RET

// func squaredFloats(a, b []float32, sums *[4]float32)
TEXT ·squaredFloats(SB), NOSPLIT, $0-56
	MOVQ  a_base+0(FP), AX
	MOVQ  a_len+8(FP), CX
	MOVQ  b_base+24(FP), BX
	MOVQ  sums+48(FP), DX
	XORPS X0, X0
	XORPS X1, X1
	SUBQ  $8, CX
	JB    end
next:
	MOVUPS (AX), X2
	MOVUPS 16(AX), X3
	MOVUPS (BX), X4
	MOVUPS 16(BX), X5
	SUBPS  X4, X2
	SUBPS  X5, X3
	MULPS  X2, X2
	MULPS  X3, X3
	ADDPS  X2, X0
	ADDPS  X3, X1
	ADDQ   $32, AX
	ADDQ   $32, BX
	SUBQ   $8, CX
	JAE    next
end:
	ADDPS  X1, X0
	MOVUPS X0, (DX)
	RET
