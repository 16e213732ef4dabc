/* Prints the nanoseconds that a number takes from one core to another: two threads, each on a core of its own, count in turns.
   The arguments are the numbers of the two cores. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ROUNDS = 200000 };

static _Alignas(64) atomic_int turn;

static void stay_on(int core) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(core, &set);
    pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

static void count(int first) {
    for (int i = first; i < 2 * ROUNDS; i += 2) {
        while (atomic_load(&turn) != i) {}
        atomic_store(&turn, i + 1);
    }
}

static void *other(void *core) {
    stay_on(*(int *)core);
    count(1);
    return NULL;
}

int main(int number, char **arguments) {
    int cores[2] = {number > 1 ? atoi(arguments[1]) : 0, number > 2 ? atoi(arguments[2]) : 1};
    struct timespec start, end;
    pthread_t thread;
    stay_on(cores[0]);
    if (pthread_create(&thread, NULL, other, &cores[1])) return 1;
    clock_gettime(CLOCK_MONOTONIC, &start);
    count(0);
    pthread_join(thread, NULL);
    clock_gettime(CLOCK_MONOTONIC, &end);
    printf("%.0f\n", ((end.tv_sec - start.tv_sec) * 1e9 + (end.tv_nsec - start.tv_nsec)) / (2.0 * ROUNDS));
    return 0;
}
