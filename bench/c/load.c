/*
 * The load client of the benchmarks: produces or consumes a fixed number of
 * records with librdkafka and prints one line of JSON.
 *
 *   load produce BOOTSTRAP TOPIC PARTITIONS COUNT SIZE ACKS
 *   load transact BOOTSTRAP TOPIC PARTITIONS COUNT SIZE EACH PRODUCERS
 *   load consume BOOTSTRAP TOPIC PARTITIONS COUNT SIZE DEADLINE_S
 *   load version
 *
 * Produce: values of SIZE random bytes (they do not compress), partitions in
 * turn. One record a partition goes first, so that connections and leaders are
 * known when the clock starts; it stops when the last record is acknowledged.
 * Transact: the same in transactions of EACH records, one after the other, by
 * PRODUCERS at once, which share the records. Each commits one transaction
 * first; the clock starts when all have, and stops when the last is committed.
 * Consume: all partitions from offset 0. The clock starts at the first record
 * and stops at the COUNTth, so finding the leaders is outside it here too.
 */
#include <librdkafka/rdkafka.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define POOL 1024       /* distinct values, cycled through */
#define BATCH 10000     /* records taken from librdkafka at once */
#define PRODUCE_DEADLINE_MS 120000

static atomic_long acknowledged;
static atomic_long failed;
static const char *_Atomic first_error;

static void die(const char *what, const char *why) {
        fprintf(stderr, "load: %s: %s\n", what, why);
        exit(1);
}

static double now_s(void) {
        struct timespec t;
        clock_gettime(CLOCK_MONOTONIC, &t);
        return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void set(rd_kafka_conf_t *conf, const char *key, const char *value) {
        char error[256];
        if (rd_kafka_conf_set(conf, key, value, error, sizeof error) != RD_KAFKA_CONF_OK)
                die(key, error);
}

static rd_kafka_t *client(rd_kafka_type_t type, rd_kafka_conf_t *conf) {
        char error[256];
        rd_kafka_t *rk = rd_kafka_new(type, conf, error, sizeof error);
        if (!rk)
                die("client", error);
        return rk;
}

static void on_delivery(rd_kafka_t *rk, const rd_kafka_message_t *message, void *opaque) {
        (void)rk;
        (void)opaque;
        if (message->err) {
                failed++;
                if (!first_error)
                        first_error = rd_kafka_err2name(message->err);
        } else {
                acknowledged++;
        }
}

/* xorshift64*: the same bytes at every run, and nothing that compresses. */
static char *random_pool(size_t size) {
        uint64_t state = 0x9e3779b97f4a7c15ULL;
        unsigned char *pool = malloc(POOL * size);
        if (!pool)
                die("values", "out of memory");
        for (size_t i = 0; i < POOL * size; i++) {
                state ^= state >> 12;
                state ^= state << 25;
                state ^= state >> 27;
                pool[i] = (unsigned char)((state * 0x2545f4914f6cdd1dULL) >> 56);
        }
        return (char *)pool;
}

static void send_one(rd_kafka_t *rk, rd_kafka_topic_t *topic, int partition, char *value,
                     size_t size) {
        while (rd_kafka_produce(topic, partition, 0, value, size, NULL, 0, NULL)) {
                if (rd_kafka_last_error() != RD_KAFKA_RESP_ERR__QUEUE_FULL)
                        die("produce", rd_kafka_err2str(rd_kafka_last_error()));
                rd_kafka_poll(rk, 10);
        }
}

static void report(long count, long bytes, double seconds) {
        printf("{\"records\": %ld, \"bytes\": %ld, \"seconds\": %.6f, \"failed\": %ld, "
               "\"error\": \"%s\"}\n",
               count, bytes, seconds, (long)failed, first_error ? first_error : "");
}

static void set_producer(rd_kafka_conf_t *conf, const char *acks) {
        set(conf, "acks", acks);
        set(conf, "linger.ms", "5");
        set(conf, "compression.codec", "none");
        set(conf, "queue.buffering.max.messages", "500000");
        set(conf, "queue.buffering.max.kbytes", "1048576");
        set(conf, "message.timeout.ms", "60000");
        rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
}

static void produce(rd_kafka_conf_t *conf, char *name, int partitions, long count, size_t size,
                    const char *acks) {
        set_producer(conf, acks);
        rd_kafka_t *rk = client(RD_KAFKA_PRODUCER, conf);
        rd_kafka_topic_t *topic = rd_kafka_topic_new(rk, name, NULL);
        char *pool = random_pool(size);

        for (int p = 0; p < partitions; p++)
                send_one(rk, topic, p, pool, size);
        rd_kafka_flush(rk, PRODUCE_DEADLINE_MS);
        if (acknowledged != partitions)
                die("first records", first_error ? first_error : "no answer in time");
        acknowledged = 0;

        double start = now_s();
        for (long i = 0; i < count; i++) {
                send_one(rk, topic, (int)(i % partitions), pool + (size_t)(i % POOL) * size, size);
                if (i % 1000 == 0)
                        rd_kafka_poll(rk, 0);
        }
        rd_kafka_flush(rk, PRODUCE_DEADLINE_MS);
        report(acknowledged, acknowledged * (long)size, now_s() - start);

        rd_kafka_topic_destroy(topic);
        rd_kafka_destroy(rk);
        free(pool);
}

static void check(const char *what, rd_kafka_error_t *error) {
        if (error)
                die(what, rd_kafka_error_string(error));
}

/* What the producers of transactions share, and where each finds its own. */
struct transactions {
        rd_kafka_conf_t *conf;
        const char *topic;
        char *pool;
        int partitions;
        long count; /* of each producer */
        size_t size;
        long each;
        pthread_barrier_t *together;
        int number;
};

static void transact_once(rd_kafka_t *rk, rd_kafka_topic_t *topic, const struct transactions *t,
                          long at, long records) {
        check("begin", rd_kafka_begin_transaction(rk));
        for (long i = 0; i < records; i++)
                send_one(rk, topic, (int)(i % t->partitions),
                         t->pool + (size_t)((at + i) % POOL) * t->size, t->size);
        check("commit", rd_kafka_commit_transaction(rk, PRODUCE_DEADLINE_MS));
}

static void *produce_transactions(void *opaque) {
        const struct transactions *t = opaque;
        char id[64];
        snprintf(id, sizeof id, "fencepost-bench-%d", t->number);
        rd_kafka_conf_t *conf = rd_kafka_conf_dup(t->conf);
        set(conf, "transactional.id", id);
        rd_kafka_t *rk = client(RD_KAFKA_PRODUCER, conf);
        rd_kafka_topic_t *topic = rd_kafka_topic_new(rk, t->topic, NULL);
        check("init", rd_kafka_init_transactions(rk, PRODUCE_DEADLINE_MS));
        transact_once(rk, topic, t, 0, t->each);
        pthread_barrier_wait(t->together); /* all have committed: the clock starts */
        pthread_barrier_wait(t->together);
        for (long sent = 0; sent < t->count; sent += t->each) {
                long left = t->count - sent;
                transact_once(rk, topic, t, sent, left < t->each ? left : t->each);
        }
        pthread_barrier_wait(t->together); /* and stops */
        rd_kafka_topic_destroy(topic);
        rd_kafka_destroy(rk);
        return NULL;
}

static void transact(rd_kafka_conf_t *conf, const char *topic, int partitions, long count,
                     size_t size, long each, int producers) {
        pthread_barrier_t together;
        pthread_barrier_init(&together, NULL, (unsigned)producers + 1);
        set_producer(conf, "all");
        char *pool = random_pool(size);
        struct transactions *all = calloc((size_t)producers, sizeof *all);
        pthread_t *threads = calloc((size_t)producers, sizeof *threads);
        if (!all || !threads)
                die("producers", "out of memory");
        for (int i = 0; i < producers; i++) {
                long share = count / producers + (i < count % producers);
                all[i] = (struct transactions){conf, topic, pool,      partitions, share,
                                               size, each,  &together, i};
                if (pthread_create(&threads[i], NULL, produce_transactions, &all[i]))
                        die("producers", "no more threads");
        }
        pthread_barrier_wait(&together);
        acknowledged = 0;
        double start = now_s();
        pthread_barrier_wait(&together);
        pthread_barrier_wait(&together);
        report(acknowledged, acknowledged * (long)size, now_s() - start);
        for (int i = 0; i < producers; i++)
                pthread_join(threads[i], NULL);
        pthread_barrier_destroy(&together);
        free(threads);
        free(all);
        free(pool);
        rd_kafka_conf_destroy(conf);
}

static void consume(rd_kafka_conf_t *conf, const char *name, int partitions, long count,
                    double deadline_s) {
        set(conf, "group.id", "fencepost-bench"); /* required by the consumer; never joined */
        set(conf, "enable.auto.commit", "false");
        set(conf, "fetch.wait.max.ms", "100");
        /* Deep enough that librdkafka never pauses fetching (1 s each time in old versions). */
        set(conf, "queued.min.messages", "1000000");
        set(conf, "queued.max.messages.kbytes", "1048576");
        rd_kafka_t *rk = client(RD_KAFKA_CONSUMER, conf);
        rd_kafka_poll_set_consumer(rk);

        rd_kafka_topic_partition_list_t *all = rd_kafka_topic_partition_list_new(partitions);
        for (int p = 0; p < partitions; p++)
                rd_kafka_topic_partition_list_add(all, name, p)->offset = 0;
        if (rd_kafka_assign(rk, all))
                die("assign", "refused");
        rd_kafka_topic_partition_list_destroy(all);

        rd_kafka_queue_t *queue = rd_kafka_queue_get_consumer(rk);
        static rd_kafka_message_t *taken[BATCH];
        double started = now_s(), start = 0;
        long records = 0, bytes = 0;
        while (records < count && now_s() - started < deadline_s) {
                ssize_t n = rd_kafka_consume_batch_queue(queue, 100, taken, BATCH);
                if (n > 0 && start == 0)
                        start = now_s();
                for (ssize_t i = 0; i < n; i++) {
                        if (taken[i]->err) {
                                failed++;
                                first_error = rd_kafka_err2name(taken[i]->err);
                        } else {
                                records++;
                                bytes += (long)taken[i]->len;
                        }
                        rd_kafka_message_destroy(taken[i]);
                }
        }
        report(records, bytes, start == 0 ? 0 : now_s() - start);
        rd_kafka_queue_destroy(queue);
        rd_kafka_consumer_close(rk);
        rd_kafka_destroy(rk);
}

int main(int argc, char **argv) {
        if (argc == 2 && !strcmp(argv[1], "version"))
                return printf("%s\n", rd_kafka_version_str()) < 0;
        if (argc != 8 + (argc > 1 && !strcmp(argv[1], "transact")))
                die("usage", "load produce|transact|consume BOOTSTRAP TOPIC PARTITIONS COUNT "
                             "SIZE ACKS|EACH PRODUCERS|DEADLINE_S");
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        set(conf, "bootstrap.servers", argv[2]);
        int partitions = atoi(argv[4]);
        long count = atol(argv[5]);
        if (partitions < 1 || count < 1)
                die("usage", "PARTITIONS and COUNT are positive numbers");
        if (!strcmp(argv[1], "produce"))
                produce(conf, argv[3], partitions, count, (size_t)atol(argv[6]), argv[7]);
        else if (!strcmp(argv[1], "transact"))
                transact(conf, argv[3], partitions, count, (size_t)atol(argv[6]), atol(argv[7]),
                         atoi(argv[8]));
        else
                consume(conf, argv[3], partitions, count, atof(argv[7]));
        return 0;
}
