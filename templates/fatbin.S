/* The device code, as bytes of the program. */
	.section .rodata
	.global rt_fatbin
	.balign 16
rt_fatbin:
	.incbin "kernels/kernels.fatbin"
	.byte 0
	.section .note.GNU-stack, "", @progbits
