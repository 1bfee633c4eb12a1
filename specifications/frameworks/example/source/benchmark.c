/* A benchmark program in C: adds numbers, and prints the time of each round as an observer's record. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define COUNT 100000

static double numbers[COUNT];

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

static long number_after(int argc, char **argv, const char *flag, long otherwise)
{
    for (int i = 1; i + 1 < argc; i++)
        if (strcmp(argv[i], flag) == 0)
            return strtol(argv[i + 1], NULL, 10);
    return otherwise;
}

int main(int argc, char **argv)
{
    long warmup = number_after(argc, argv, "--warmup", 0);
    long rounds = number_after(argc, argv, "--iter", 10);
    volatile double sum = 0;

    for (long i = 0; i < COUNT; i++)
        numbers[i] = (double)i;
    for (long round = 0; round < warmup + rounds; round++) {
        double began = now_us();
        for (long i = 0; i < COUNT; i++)
            sum += numbers[i];
        if (round >= warmup)
            printf("PyTorchObserver {\"type\": \"NET\", \"metric\": \"latency\", \"unit\": \"us\", \"value\": \"%.3f\"}\n",
                   now_us() - began);
    }
    return 0;
}
