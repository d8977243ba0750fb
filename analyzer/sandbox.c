/* sandbox.c - see sandbox.h. */
#include "sandbox.h"

#include "base.h"

#include <errno.h>
#include <seccomp.h>

#ifdef ARENA_ONE_BLOCK_EACH /* sanitizers start a symbolizer and stop threads */
void sandbox_enter(void) {}
#else
void sandbox_enter(void)
{
    static const int never[] = {
        SCMP_SYS(socket),
        SCMP_SYS(socketpair),
        SCMP_SYS(connect),
        SCMP_SYS(bind),
        SCMP_SYS(listen),
        SCMP_SYS(accept),
        SCMP_SYS(accept4),
        SCMP_SYS(sendto),
        SCMP_SYS(sendmsg),
        SCMP_SYS(execve),
        SCMP_SYS(execveat),
        SCMP_SYS(fork),
        SCMP_SYS(vfork),
        SCMP_SYS(ptrace),
        SCMP_SYS(process_vm_readv),
        SCMP_SYS(process_vm_writev),
        SCMP_SYS(kill),
        SCMP_SYS(tkill),
        SCMP_SYS(setuid),
        SCMP_SYS(setgid),
        SCMP_SYS(setreuid),
        SCMP_SYS(setregid),
        SCMP_SYS(setresuid),
        SCMP_SYS(setresgid),
        SCMP_SYS(mount),
        SCMP_SYS(umount2),
        SCMP_SYS(pivot_root),
        SCMP_SYS(chroot),
        SCMP_SYS(unshare),
        SCMP_SYS(setns),
        SCMP_SYS(bpf),
        SCMP_SYS(perf_event_open),
        SCMP_SYS(init_module),
        SCMP_SYS(finit_module),
        SCMP_SYS(delete_module),
        SCMP_SYS(kexec_load),
        SCMP_SYS(reboot),
        SCMP_SYS(keyctl),
        SCMP_SYS(add_key),
        SCMP_SYS(request_key),
        SCMP_SYS(io_uring_setup),
        SCMP_SYS(userfaultfd),
    };
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);

    if (!filter)
        return;
    for (size_t i = 0; i < ARRAY_LEN(never); i++)
        (void)seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), never[i], 0);
    (void)seccomp_load(filter);
    seccomp_release(filter);
}
#endif
