/*
 * sandbox.h - captures come from incidents: assume that an attacker shaped every byte. Before the
 * first one is read, the process gives up what it never needs: networks, other programs, other
 * processes, and more rights.
 */
#ifndef SANDBOX_H
#define SANDBOX_H

/* For all threads, for good. Where the kernel cannot do it, nothing happens: it is a second line of
 * defence. Sanitizer builds keep their tools. */
void sandbox_enter(void);

#endif
