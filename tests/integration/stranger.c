// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A hostile client on a raw socket. The daemon must keep answering a second connection, the
 * witness. The caller checks the daemon's resources afterwards.
 *
 *   stranger SOCKET garbage          truncated, lengthened, changed and random packets
 *   stranger SOCKET descriptors      descriptors that the daemon did not ask for
 *   stranger SOCKET silent N         N connections that say nothing, or shut one half down
 *   stranger SOCKET killed NS N      N clients that create, delete, open and are killed meanwhile
 *   stranger SOCKET deaf NS N        N connections that keep asking and never read
 *   stranger SOCKET hold N           N idle connections
 *
 * The last two print a line when they are connected, and stay until their input ends.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "proto/macro.h"
#include "proto/packet.h"

#define PATIENCE_MSEC 30000

static struct sockaddr_un address = { .sun_family = AF_UNIX };
static int witness = -EBADF;
static union pp_body body;
static uint8_t buf[PP_PACKET_MAX + 1];

__attribute__((noreturn)) static void die(const char *what)
{
	printf("failed: %s: %m\n", what);
	exit(1);
}

static int dial(void)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		die("cannot connect");
	return fd;
}

static bool wait_for(int fd, short events)
{
	struct pollfd p = { .fd = fd, .events = events };

	return poll(&p, 1, PATIENCE_MSEC) > 0;
}

static size_t encode(uint16_t op, const void *content, void *to)
{
	struct pp_header h = { .opcode = op, .serial = 7 };
	ssize_t n = pp_encode(&h, content, to, PP_PACKET_MAX);

	if (n < 0)
		die("cannot encode");
	return n;
}

/* Sends a request and reads the reply, on a connection that behaves. */
static void ask(int fd, uint16_t op, const void *content)
{
	struct pp_header h;
	ssize_t n;

	if (send(fd, buf, encode(op, content, buf), MSG_NOSIGNAL) < 0 || !wait_for(fd, POLLIN))
		die("the witness is not answered");
	n = recv(fd, buf, sizeof(buf), 0);
	if (n <= 0 || pp_decode(buf, n, 0, true, &h, &body) < 0 || h.serial != 7)
		die("the witness got no reply");
}

/* Waits until the parent closes our input. */
static void await_end(void)
{
	char c;

	while (read(STDIN_FILENO, &c, 1) > 0)
		;
}

static void testify(void)
{
	static const struct pp_msg_list_request all;

	ask(witness, PP_OP_PING, &body.empty);
	ask(witness, PP_OP_LIST, &all);
}

/* Whether the daemon closed the connection; errors that it sent before are skipped. */
static bool is_ended(int fd)
{
	for (;;) {
		ssize_t n;

		if (!wait_for(fd, POLLIN))
			return false;
		n = recv(fd, buf, sizeof(buf), 0);
		if (n <= 0)
			return n == 0 || errno == ECONNRESET;
		if (buf[3] != 0x80 || buf[2] != 0) /* anything but an error */
			return false;
	}
}

/* ── packets that are none ──────────────────────────────────────────────────────────────── */

static unsigned sent;

/* Sends the packet on a connection of its own, which the daemon must close. */
static void offend(const void *packet, size_t size, const char *what)
{
	_cleanup_close_ int fd = dial();

	if (send(fd, packet, size, MSG_NOSIGNAL) < 0)
		die("cannot send");
	if (!is_ended(fd)) {
		printf("failed: still connected after %s, %zu bytes\n", what, size);
		exit(1);
	}
	if (++sent % 50 == 0)
		testify();
}

static void garbage(void)
{
	static const struct pp_msg_create_request create = {
		.ns = "stranger",
		.name = "x",
		.period = 1,
		.count = 1,
		.selections = { { .event = "cpu-clock" } },
	};
	static uint8_t good[PP_PACKET_MAX], bad[PP_PACKET_MAX + 1];
	size_t size = encode(PP_OP_CREATE, &create, good);

	for (size_t n = 1; n < size; n = n < 64 ? n + 1 : n + 37)
		offend(good, n, "a truncated packet");
	for (size_t more = 1; more < 60000; more = more * 3 + 1) {
		memcpy(bad, good, size);
		offend(bad, size + more, "a lengthened packet");
	}
	offend(bad, sizeof(bad), "a packet above the maximum");
	/* version, size and fds; a changed opcode may be valid, and any serial is */
	for (size_t i = 0; i < PP_HEADER_SIZE; i++)
		for (unsigned bit = 0; bit < 8 && (i < 2 || i >= 8); bit++) {
			memcpy(bad, good, size);
			bad[i] ^= 1 << bit;
			offend(bad, size, "a changed header");
		}
	memcpy(bad, good, size);
	bad[PP_HEADER_SIZE + PP_NAME_SIZE - 1] = 'x';
	offend(bad, size, "something behind a NUL");
	memset(bad + PP_HEADER_SIZE, 'x', PP_NAME_SIZE);
	offend(bad, size, "a string without a NUL");
	srandom(1);
	for (unsigned i = 0; i < 300; i++) {
		size_t n = 1 + random() % (i % 2 ? 64 : PP_PACKET_MAX);

		for (size_t j = 0; j < n; j++)
			bad[j] = random();
		offend(bad, n, "noise");
	}
	printf("garbage: %u packets, each cost its sender the connection\n", sent);
}

/* ── descriptors ────────────────────────────────────────────────────────────────────────── */

/* Sends n copies of a pipe's writing end: its reader sees the end only when all are closed. Returns
 * how many the daemon got, which is none where the kernel keeps them out (SO_PASSRIGHTS). */
static unsigned send_descriptors(unsigned n, unsigned announced)
{
	_cleanup_close_ int fd = dial(), reader = -EBADF;
	size_t size = encode(PP_OP_PING, &body.empty, buf);
	int ends[2], fds[PP_FDS_MAX];
	uint32_t count = announced;
	char c;
	int r;

	if (pipe2(ends, O_CLOEXEC) < 0)
		die("no pipe");
	reader = ends[0];
	for (unsigned i = 0; i < n; i++)
		fds[i] = ends[1];
	memcpy(buf + 12, &count, sizeof(count));
	r = pp_packet_send(fd, buf, size, fds, n);
	close(ends[1]);
	if (r < 0 && r != -EPERM)
		die("cannot send descriptors");
	if (r == 0 && !is_ended(fd))
		die("still connected after sending descriptors");
	if (!wait_for(reader, POLLIN) || read(reader, &c, 1) != 0)
		die("the daemon keeps a stranger's descriptor");
	testify();
	return r == 0 ? n : 0;
}

static void descriptors(void)
{
	unsigned came = 0;

	for (unsigned i = 0; i < 20; i++) {
		came += send_descriptors(1, 0);
		came += send_descriptors(1, 1);
		came += send_descriptors(PP_FDS_MAX, PP_FDS_MAX);
	}
	printf("descriptors: %u unasked for, %u of them came, all closed again\n",
	       20 * (2 + PP_FDS_MAX), came);
}

/* ── connections that are no use ────────────────────────────────────────────────────────── */

static void silent(unsigned n)
{
	int *fd = calloc(n, sizeof(*fd));

	for (unsigned i = 0; fd && i < n; i++) {
		fd[i] = dial();
		if (i % 3)
			shutdown(fd[i], i % 3 == 1 ? SHUT_WR : SHUT_RD);
	}
	testify();
	for (unsigned i = 0; fd && i < n; i++)
		close(fd[i]);
	free(fd);
	testify();
	printf("silent: %u connections, a third of them half closed each way\n", n);
}

/* Asks again and again until the daemon reads no more. Returns how often. */
static unsigned ask_deafly(int fd, uint16_t op, const void *content)
{
	struct timeval moment = { .tv_usec = 300000 }; /* no room for so long means that it is
						        * full */
	unsigned requests = 0;

	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &moment, sizeof(moment));
	while (send(fd, buf, encode(op, content, buf), MSG_NOSIGNAL) > 0) {
		if (++requests > 100000)
			die("the daemon takes requests without end");
		testify();
	}
	testify();
	return requests;
}

static void deaf(const char *ns, unsigned n)
{
	struct pp_msg_open_request open = { .which.name = "witness" };
	static const struct pp_msg_list_request all;
	unsigned lists = 0, opens = 0;
	int *fd = calloc(n, sizeof(*fd));

	snprintf(open.which.ns, sizeof(open.which.ns), "%s", ns);
	for (unsigned i = 0; fd && i < n; i++) {
		fd[i] = dial();
		if (i % 4)
			opens += ask_deafly(fd[i], PP_OP_OPEN, &open);
		else
			lists += ask_deafly(fd[i], PP_OP_LIST, &all);
	}
	printf("deaf: %u lists and %u opens on %u connections until the daemon read no more\n",
	       lists, opens, n);
	free(fd);
	fflush(stdout);
	await_end();
}

/* ── clients that die ───────────────────────────────────────────────────────────────────── */

static void request(const char *ns, unsigned i)
{
	static struct pp_msg_create_request create = {
		.data_size = 4096,
		.count = 1,
		.selections = { { .event = "sched:sched_switch" } },
	};
	struct pp_msg_open_request open = { .first = 0 };
	struct pp_msg_name name = { .id = 0 };
	char text[PP_NAME_SIZE];
	int fd = dial();

	snprintf(create.ns, sizeof(create.ns), "%s", ns);
	snprintf(name.ns, sizeof(name.ns), "%s", ns);
	snprintf(text, sizeof(text), "k%u", i / 2);
	memcpy(create.name, text, sizeof(text));
	memcpy(name.name, text, sizeof(text));
	open.which = name;
	send(fd, buf,
	     encode(i % 2 ? PP_OP_DELETE : PP_OP_CREATE, i % 2 ? (void *)&name : (void *)&create,
		    buf),
	     MSG_NOSIGNAL);
	send(fd, buf, encode(PP_OP_OPEN, &open, buf), MSG_NOSIGNAL);
	wait_for(fd, POLLIN);
}

static void killed(const char *ns, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			request(ns, i);
			_exit(0);
		}
		/* At a different time each: before it connects, while it waits, when it is done. */
		poll(NULL, 0, (int)(i % 8));
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		testify();
	}
	printf("killed: %u clients in the middle of creating and deleting\n", n);
}

static void hold(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		ask(dial(), PP_OP_PING, &body.empty);
	printf("ready\n");
	fflush(stdout);
	await_end();
}

int main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[2] : "";
	int n = argc > 3 ? atoi(argv[argc - 1]) : 0;

	if (argc < 3 || strlen(argv[1]) >= sizeof(address.sun_path)) {
		fprintf(stderr,
			"usage: stranger SOCKET garbage|descriptors|silent|deaf|killed|hold …\n");
		return 2;
	}
	strcpy(address.sun_path, argv[1]);
	if (strcmp(what, "hold") == 0) {
		hold(n);
		return 0;
	}
	witness = dial();
	if (strcmp(what, "garbage") == 0)
		garbage();
	else if (strcmp(what, "descriptors") == 0)
		descriptors();
	else if (strcmp(what, "silent") == 0)
		silent(n);
	else if (strcmp(what, "deaf") == 0)
		deaf(argv[3], n);
	else if (strcmp(what, "killed") == 0)
		killed(argv[3], n);
	else
		return 2;
	return 0;
}
