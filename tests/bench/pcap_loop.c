/* pcap_loop.c - the limit that everything is measured against: a loop that only calls pcap_next_ex.
 */
#include <pcap/pcap.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    char err[PCAP_ERRBUF_SIZE];
    struct pcap_pkthdr *h;
    const u_char *bytes;
    unsigned long long n = 0;

    if (argc != 2)
        return 2;
    pcap_t *p = pcap_open_offline(argv[1], err);
    if (!p) {
        fprintf(stderr, "%s\n", err);
        return 1;
    }
    while (pcap_next_ex(p, &h, &bytes) == 1)
        n += h->caplen;
    printf("%llu bytes\n", n);
    pcap_close(p);
    return 0;
}
