# perfpersist: `make demo` shows the main job, `make check` passes the tests; both install what they
# need on a bare machine. `make help` lists the rest.
#
# Sources are found by folder: a new .c file in a folder below is built with no change here.

VERSION := 0.1.0
BUILD ?= build
ifeq ($(origin CC),default)
CC := gcc
endif
CLANG ?= clang
PKG_CONFIG ?= pkg-config
BPFTOOL := $(or $(shell command -v bpftool 2>/dev/null),/usr/sbin/bpftool)

PREFIX ?= /usr
SYSCONFDIR ?= /etc
BINDIR ?= $(PREFIX)/bin
SBINDIR ?= $(PREFIX)/sbin
LIBEXECDIR ?= $(PREFIX)/lib/perfpersist
INCLUDEDIR ?= $(PREFIX)/include
MANDIR ?= $(PREFIX)/share/man
MULTIARCH := $(shell $(CC) -print-multiarch 2>/dev/null)
LIBDIR ?= $(PREFIX)/lib/$(MULTIARCH)
UNITDIR ?= $(PREFIX)/lib/systemd/system
SYSUSERSDIR ?= $(PREFIX)/lib/sysusers.d
TMPFILESDIR ?= $(PREFIX)/lib/tmpfiles.d
CATALOGDIR ?= $(PREFIX)/lib/systemd/catalog
# Where Debian's shells look for completions; others' zsh: $(PREFIX)/share/zsh/site-functions.
BASHDIR ?= $(PREFIX)/share/bash-completion/completions
ZSHDIR ?= $(PREFIX)/share/zsh/vendor-completions

# ── flags ────────────────────────────────────────────────────────────────────────────────

WARN := -Wall -Wextra -Wformat=2 -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Werror
HARDEN := -fstack-protector-strong -fstack-clash-protection -fPIC
CPPFLAGS += -D_GNU_SOURCE -DPP_VERSION='"$(VERSION)"' -DPP_LIBEXECDIR='"$(LIBEXECDIR)"' \
	-DPP_SYSCONFDIR='"$(SYSCONFDIR)"' -DPP_VENDORDIR='"$(PREFIX)/lib"' -I. -I$(BUILD)/gen
ALL_CFLAGS = -std=gnu17 $(OPTIMIZE) -g -ffile-prefix-map=$(CURDIR)=. $(WARN) $(HARDEN) $(SAN) $(CFLAGS)
ALL_LDFLAGS = -pie -Wl,-z,relro,-z,now -Wl,--as-needed $(SAN) $(LDFLAGS)
ifeq ($(MULTIARCH),x86_64-linux-gnu)
HARDEN += -fcf-protection
endif
ifneq ($(filter aarch64-%,$(MULTIARCH)),)
HARDEN += -mbranch-protection=standard
endif
# With sanitizers -O1 takes the compiler 1.8 times as long as -O0, which is longer than the tests run faster, and
# removes accesses before the sanitizers see them. Warnings depend on it: those of the ordinary build count.
OPTIMIZE := -O2
ifdef SANITIZE
OPTIMIZE := -O0
WARN := -w
# Static libraries: LeakSanitizer reads all that a program may write, at its end and at that of each child, and each of
# the shared ones has 6 MB of that, a page fault for each 4 KB.
SAN := -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer -static-libasan -static-libubsan
else
HARDEN += -D_FORTIFY_SOURCE=2
endif

BPF_ARCH := $(patsubst x86_64,x86,$(patsubst aarch64,arm64,$(shell uname -m)))
BPF_CFLAGS := -g -O2 -Wall -Wextra -Werror -target bpf -D__TARGET_ARCH_$(BPF_ARCH) \
	-ffile-prefix-map=$(CURDIR)=. -I. $(if $(MULTIARCH),-idirafter /usr/include/$(MULTIARCH))

# Asked once for each set of packages, and not for each file.
once = $(if $(filter undefined,$(origin $(1))),$(eval $(1) := $$(shell $(2))))$($(1))
pkg = $(call once,$(subst $() ,,pkg-$(1)-$(2)),$(PKG_CONFIG) --$(1) $(2) 2>/dev/null)
pkg-cflags = $(call pkg,cflags,$(1))
pkg-libs = $(call pkg,libs,$(1))

# What a command does in a word; V=1 shows it whole.
ifdef V
say = @:
else
say = @$(info $()  $(1)	$(patsubst $(BUILD)/%,%,$@))
.SILENT:
endif

# ── what there is ────────────────────────────────────────────────────────────────────────

# Of a folder alone, and with all that is below it.
objs = $(patsubst %.c,$(BUILD)/obj/%.o,$(wildcard $(1)/*.c))
objs-below = $(patsubst %.c,$(BUILD)/obj/%.o,$(filter-out %.bpf.c,$(sort $(shell find $(1) -name '*.c'))))

PROTO_OBJS := $(call objs,proto)
COMMON_OBJS := $(call objs,daemon)
BROKER_OBJS := $(call objs-below,daemon/broker)
ENGINE_OBJS := $(call objs-below,daemon/engine)
DUMPER_OBJS := $(call objs,daemon/dumper)
KEEPER_OBJS := $(call objs,daemon/keeper)
# What dumper and keeper need of daemon/: no more, so that they parse no more.
SERVER_OBJS := $(patsubst %,$(BUILD)/obj/daemon/%.o,accept dispose log start text)
PERFCTL_OBJS := $(call objs-below,client/perfctl)
CLIENT_OBJS := $(filter-out $(PERFCTL_OBJS),$(call objs-below,client))
BPF_SKELS := $(patsubst daemon/engine/bpf/%.bpf.c,$(BUILD)/gen/%.skel.h,$(wildcard daemon/engine/bpf/*.bpf.c))

UNIT_TESTS := $(patsubst tests/unit/%.c,$(BUILD)/tests/unit/%,$(wildcard tests/unit/test-*.c))
HELPERS := $(patsubst tests/integration/%.c,$(BUILD)/tests/%,$(wildcard tests/integration/*.c)) \
	$(patsubst tests/vm/%.c,$(BUILD)/tests/%,$(wildcard tests/vm/*.c))
BENCHES := $(patsubst tests/bench/%.c,$(BUILD)/tests/%,$(wildcard tests/bench/*.c))
# BPF programs of users: those that tests load, and the documentation's examples.
USER_BPF := $(patsubst %.bpf.c,$(BUILD)/tests/%.bpf.o,$(notdir $(wildcard tests/bpf/*.bpf.c docs/examples/*.bpf.c)))
MANPAGES := client/perfctl/perfctl.1 client/libperfpersist.3 conf/perfpersistd.conf.5 \
	daemon/broker/perfpersistd.8
FUZZERS := $(patsubst tests/fuzz/%.c,$(BUILD)/fuzz/%,$(wildcard tests/fuzz/fuzz-*.c))

PROGRAMS := $(BUILD)/perfpersistd $(BUILD)/perfpersist-engine $(BUILD)/perfpersist-dumper \
	$(BUILD)/perfpersist-keeper $(BUILD)/perfctl
SONAME := libperfpersist.so.0
LIBRARIES := $(BUILD)/libperfpersist.a $(BUILD)/$(SONAME)

.PHONY: all deps demo check check-quick check-all check-vm bench bench-apps bench-sideband bench-presets \
	bench-boot asan \
	asan-unit install deb clean help programs tests unit-tests fuzzers format
.DEFAULT_GOAL := all

all: programs ## build everything but the tests
programs: $(PROGRAMS) $(LIBRARIES)

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 28

# Each of these starts from nothing, and installs what it needs and no more. Recursive, so that what
# was installed is seen.
deps: ## install the packages that building and packaging need
	@conf/deps.sh build package
demo: ## the main job, shown on this machine, in an instance of its own
	@conf/deps.sh build
	@$(MAKE) --no-print-directory -j2 programs
	@tests/demo.sh $(BUILD)
check: ## the tests that guard every commit, in ten minutes
	@conf/deps.sh build test package guest
	@$(MAKE) --no-print-directory -j2 programs tests
	@tests/run.sh --tier check $(BUILD)
check-quick: ## what needs no root, in less than a minute
	@conf/deps.sh build test
	@$(MAKE) --no-print-directory -j2 programs unit-tests $(BUILD)/tests/print-protocol
	@tests/run.sh --tier quick $(BUILD)
check-all: ## every test, at full length and on every guest kernel
	@conf/deps.sh build test package guest
	@$(MAKE) --no-print-directory -j2 programs tests
	@tests/run.sh --tier all $(BUILD)
check-vm: ## the tests in booted guests alone
	@conf/deps.sh build package guest
	@$(MAKE) --no-print-directory -j2 programs $(HELPERS)
	@tests/run.sh --tier all -k vm/ $(BUILD)
bench: programs ## side-by-side measurements, into build/bench.json
	@$(MAKE) --no-print-directory -j2 $(BENCHES)
	@tests/bench/run.sh $(BUILD)
bench-sideband: programs ## sideband under as many short programs as the machine runs, for a minute
	@$(MAKE) --no-print-directory $(BUILD)/tests/bench-sideband
	@tests/bench/sideband.sh $(BUILD)
bench-apps: programs ## what the preset flight costs redis, nginx, PostgreSQL and others
	@$(MAKE) --no-print-directory $(BUILD)/tests/bench-between
	@tests/bench/apps.sh $(BUILD)
bench-presets: programs ## what each preset costs, and how far back it reaches
	@$(MAKE) --no-print-directory $(BUILD)/tests/bench-presets
	@tests/bench/presets.sh $(BUILD)
bench-boot: deb $(BUILD)/tests/tsc-khz ## what recording from early on costs a boot, in a guest
	@tests/vm/build.sh $(BUILD)
	@BUILD=$(BUILD) tests/vm/run.sh tests/vm/bench-boot.sh
asan: ## everything again with ASan and UBSan, in build/asan
	@$(MAKE) --no-print-directory BUILD=$(BUILD)/asan SANITIZE=1 programs tests

asan-unit:
	@$(MAKE) --no-print-directory BUILD=$(BUILD)/asan SANITIZE=1 unit-tests

unit-tests: $(UNIT_TESTS)
tests: unit-tests $(HELPERS) $(USER_BPF)
fuzzers: $(FUZZERS)

# ── compiling ────────────────────────────────────────────────────────────────────────────

$(BUILD)/obj/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(call say,CC)
	$(CC) $(CPPFLAGS) $(ALL_CFLAGS) $(EXTRA_CFLAGS) -MMD -MP -c -o $@ $<

$(BROKER_OBJS): EXTRA_CFLAGS = $(call pkg-cflags,libsystemd inih)
$(KEEPER_OBJS): EXTRA_CFLAGS = $(call pkg-cflags,libsystemd)
$(DUMPER_OBJS): EXTRA_CFLAGS = $(call pkg-cflags,libsystemd)
$(COMMON_OBJS): EXTRA_CFLAGS = $(call pkg-cflags,libsystemd)
$(ENGINE_OBJS): EXTRA_CFLAGS = $(call pkg-cflags,libbpf libtraceevent libsystemd)
$(PERFCTL_OBJS): EXTRA_CFLAGS = $(call pkg-cflags,libsystemd libbpf libtraceevent libdw zlib)
$(CLIENT_OBJS) $(PROTO_OBJS): EXTRA_CFLAGS = -fvisibility=hidden

# The page of `perfctl report --html` is built into perfctl, with the hashes that its policy names.
PAGE_SRC := client/perfctl/pictures/page
PAGE_JS := $(addprefix $(PAGE_SRC)/,$(addsuffix .js,data view filter timeline timeline-mouse coverage latency flame \
	records summary tree changes page))
PAGE := $(BUILD)/gen/page
PAGE_OBJ := $(BUILD)/obj/client/perfctl/pictures/html-page.o
page-hash = $$(sha256sum <$(1) | cut -c1-64 | tr a-f A-F | basenc --base16 -d | base64)
$(PAGE_OBJ): EXTRA_CFLAGS += -I$(PAGE) -DPAGE_DIR='"$(PAGE)"'
$(PAGE_OBJ): $(PAGE)/page-hashes.h
$(PAGE)/page-hashes.h: $(PAGE_JS) $(PAGE_SRC)/page.css $(PAGE_SRC)/page.html Makefile
	@mkdir -p $(@D)
	$(call say,PAGE)
	cat $(PAGE_JS) >$(PAGE)/page.js
	cp $(PAGE_SRC)/page.css $(PAGE_SRC)/page.html $(PAGE)/
	printf '#define PAGE_%s_HASH "%s"\n' JS $(call page-hash,$(PAGE)/page.js) \
		CSS $(call page-hash,$(PAGE)/page.css) >$@.tmp && mv $@.tmp $@
# Names of system calls, from the numbers of the compiler's own headers.
$(BUILD)/obj/client/perfctl/replay/syscall-names.o: $(BUILD)/gen/syscall-numbers.h
$(BUILD)/gen/syscall-numbers.h: Makefile
	@mkdir -p $(@D)
	$(call say,GEN)
	echo '#include <asm/unistd.h>' | $(CC) $(CPPFLAGS) -E -dM - | sed -nE \
		'/__NR_(syscalls|arch_specific_syscall) /d; s/^#define (__NR_([a-z0-9_]+)) .*/[\1] = "\2",/p' \
		>$@.tmp && mv $@.tmp $@
$(ENGINE_OBJS): | $(BPF_SKELS)

# Kept: make would remove what it takes for a step between, and build the engine a second time.
.PRECIOUS: $(BUILD)/bpf/%.bpf.o
$(BUILD)/bpf/%.bpf.o: daemon/engine/bpf/%.bpf.c Makefile
	@mkdir -p $(@D)
	$(call say,BPF)
	$(CLANG) $(BPF_CFLAGS) -MMD -MP -MF $(@:.o=.d) -c -o $@ $<

$(BUILD)/gen/%.skel.h: $(BUILD)/bpf/%.bpf.o
	@mkdir -p $(@D)
	$(call say,SKEL)
	$(BPFTOOL) gen skeleton $< name $(subst -,_,$*)_bpf > $@.tmp && mv $@.tmp $@

# ── linking ──────────────────────────────────────────────────────────────────────────────

$(BUILD)/perfpersistd: $(BROKER_OBJS) $(COMMON_OBJS) $(PROTO_OBJS)
	$(call say,LINK)
	$(CC) $(ALL_LDFLAGS) -o $@ $^ $(call pkg-libs,libsystemd inih libelf)

$(BUILD)/perfpersist-engine: $(ENGINE_OBJS) $(COMMON_OBJS) $(PROTO_OBJS)
	$(call say,LINK)
	$(CC) $(ALL_LDFLAGS) -o $@ $^ $(call pkg-libs,libbpf libtraceevent libsystemd)

$(BUILD)/perfpersist-dumper: $(DUMPER_OBJS) $(SERVER_OBJS) $(PROTO_OBJS)
	$(call say,LINK)
	$(CC) $(ALL_LDFLAGS) -o $@ $^ $(call pkg-libs,libsystemd)

$(BUILD)/perfpersist-keeper: $(KEEPER_OBJS) $(SERVER_OBJS) $(PROTO_OBJS)
	$(call say,LINK)
	$(CC) $(ALL_LDFLAGS) -o $@ $^ $(call pkg-libs,libsystemd)

$(BUILD)/libperfpersist.a: $(CLIENT_OBJS) $(PROTO_OBJS)
	$(call say,AR)
	rm -f $@ && $(AR) rcs $@ $^

$(BUILD)/$(SONAME): $(CLIENT_OBJS) $(PROTO_OBJS) client/libperfpersist.map
	$(call say,LINK)
	$(CC) $(filter-out -pie,$(ALL_LDFLAGS)) -shared -Wl,-soname,$(SONAME) \
		-Wl,--version-script=client/libperfpersist.map -o $@ $(filter %.o,$^)
	ln -sf $(SONAME) $(BUILD)/libperfpersist.so

$(BUILD)/perfctl: $(PERFCTL_OBJS) $(BUILD)/libperfpersist.a
	$(call say,LINK)
	$(CC) $(ALL_LDFLAGS) -o $@ $^ $(call pkg-libs,libsystemd libbpf libtraceevent libdw libelf zlib) -lm

# ── tests ────────────────────────────────────────────────────────────────────────────────

# A unit test links what it tests: everything but the mains.
UNIT_OBJS := $(PROTO_OBJS) $(COMMON_OBJS) $(CLIENT_OBJS) \
	$(filter-out %/main.o,$(BROKER_OBJS) $(ENGINE_OBJS) $(DUMPER_OBJS) \
		$(KEEPER_OBJS) $(PERFCTL_OBJS))
TEST_LIBS = $(call pkg-libs,libsystemd inih libelf libdw zlib libbpf libtraceevent check) -lm

# -O2 takes the compiler 1.7 times as long, for code whose speed matters to nobody. (Without `private` libunit.a, which
# is what they test, would get this, too.)
ifndef SANITIZE
$(BUILD)/tests/unit/%: private OPTIMIZE := -O1
endif
$(BUILD)/tests/unit/%: tests/unit/%.c $(BUILD)/libunit.a Makefile
	@mkdir -p $(@D)
	$(call say,TEST)
	$(CC) $(CPPFLAGS) $(ALL_CFLAGS) $(call pkg-cflags,check libtraceevent) -MMD -MP -MF $@.d \
		$(ALL_LDFLAGS) -o $@ $< $(BUILD)/libunit.a $(TEST_LIBS)

$(BUILD)/libunit.a: $(UNIT_OBJS)
	$(call say,AR)
	rm -f $@ && $(AR) rcs $@ $^

$(BUILD)/tests/%: tests/integration/%.c $(BUILD)/libperfpersist.a Makefile
	@mkdir -p $(@D)
	$(call say,TEST)
	$(CC) $(CPPFLAGS) $(ALL_CFLAGS) -MMD -MP -MF $@.d $(ALL_LDFLAGS) -o $@ $< \
		$(BUILD)/libperfpersist.a -lpthread

# What is recorded does what it says, and no sanitizer's work beside it.
$(addprefix $(BUILD)/tests/,chained crashing latency-target numbered pairs probe-target report-target scene \
	sideband-work tasks tp-workload unwound): private SAN :=

# The kernel finds callers by their frame pointers.
$(BUILD)/tests/chained $(BUILD)/tests/scene: ALL_CFLAGS += -fno-omit-frame-pointer -fno-optimize-sibling-calls

# Its stack is unwound without them.
$(BUILD)/tests/unwound: ALL_CFLAGS += -O2 -fomit-frame-pointer -fno-optimize-sibling-calls

# As a user compiles his, with the header where it is installed.
USER_INCLUDE := $(BUILD)/gen/include
$(USER_INCLUDE)/perfpersist/perfpersist.bpf.h: proto/perfpersist.bpf.h
	@mkdir -p $(@D)
	cp $< $@

$(BUILD)/tests/%.bpf.o: tests/bpf/%.bpf.c Makefile
	@mkdir -p $(@D)
	$(call say,BPF)
	$(CLANG) $(BPF_CFLAGS) -MMD -MP -MF $(@:.o=.d) -c -o $@ $<

$(BUILD)/tests/%.bpf.o: docs/examples/%.bpf.c $(USER_INCLUDE)/perfpersist/perfpersist.bpf.h Makefile
	@mkdir -p $(@D)
	$(call say,BPF)
	$(CLANG) $(filter-out -I.,$(BPF_CFLAGS)) -I$(USER_INCLUDE) -MMD -MP -MF $(@:.o=.d) -c -o $@ $<

$(BUILD)/tests/%.so: tests/integration/%.so.c Makefile
	@mkdir -p $(@D)
	$(call say,TEST)
	$(CC) $(CPPFLAGS) $(filter-out -fsanitize=%,$(ALL_CFLAGS)) -fPIC -shared -MMD -MP -MF $@.d -o $@ $<

$(BUILD)/tests/%: tests/vm/%.c Makefile
	@mkdir -p $(@D)
	$(call say,TEST)
	$(CC) $(CPPFLAGS) $(ALL_CFLAGS) -MMD -MP -MF $@.d $(ALL_LDFLAGS) -o $@ $<

# It makes programs, as the engine does.
$(BUILD)/tests/bench-between: BENCH_LIBRARIES = $(BUILD)/libunit.a
$(BUILD)/tests/bench-between: $(BUILD)/libunit.a
$(BUILD)/tests/%: tests/bench/%.c $(BUILD)/libperfpersist.a Makefile
	@mkdir -p $(@D)
	$(call say,TEST)
	$(CC) $(CPPFLAGS) $(ALL_CFLAGS) $(call pkg-cflags,libbpf) -MMD -MP -MF $@.d $(ALL_LDFLAGS) \
		-o $@ $< $(BENCH_LIBRARIES) $(BUILD)/libperfpersist.a $(call pkg-libs,libbpf) -lpthread

# What fuzzers test is compiled by clang, so that it is instrumented, too.
FUZZ_SRCS := $(wildcard proto/*.c daemon/*.c daemon/broker/syntax/*.c client/perfctl/decode/*.c \
	client/perfctl/trace/trace*.c client/perfctl/trace/process*.c) \
	$(patsubst $(BUILD)/obj/%.o,%.c,$(CLIENT_OBJS)) client/perfctl/output/output.c \
	client/perfctl/events/spool.c client/perfctl/parse.c \
	$(patsubst %,daemon/broker/%.c,hotplug/uevent $(addprefix config/,settings config \
		config-value keys key-types key-events dropin-file)) \
	$(filter-out %/main.c %/server.c,$(wildcard daemon/keeper/*.c))
FUZZ_FLAGS = -std=gnu17 -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all $(CPPFLAGS) \
	$(call pkg-cflags,libsystemd inih libtraceevent)

$(BUILD)/obj-fuzz/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(call say,FUZZ)
	$(CLANG) $(FUZZ_FLAGS) -fsanitize=fuzzer-no-link -MMD -MP -c -o $@ $<

$(BUILD)/libfuzz.a: $(FUZZ_SRCS:%.c=$(BUILD)/obj-fuzz/%.o)
	$(call say,AR)
	rm -f $@ && $(AR) rcs $@ $^

$(BUILD)/fuzz/%: tests/fuzz/%.c $(BUILD)/libfuzz.a
	@mkdir -p $(@D)
	$(call say,FUZZ)
	$(CLANG) $(FUZZ_FLAGS) -fsanitize=fuzzer -MMD -MP -MF $@.d -o $@ $< $(BUILD)/libfuzz.a \
		-Wl,--as-needed $(call pkg-libs,libsystemd inih libelf libtraceevent)

# ── installing ───────────────────────────────────────────────────────────────────────────

install: programs ## to DESTDIR
	install -D -m 0755 $(BUILD)/perfpersistd $(DESTDIR)$(SBINDIR)/perfpersistd
	install -D -m 0755 $(BUILD)/perfpersist-engine $(DESTDIR)$(LIBEXECDIR)/perfpersist-engine
	install -D -m 0755 $(BUILD)/perfpersist-dumper $(DESTDIR)$(LIBEXECDIR)/perfpersist-dumper
	install -D -m 0755 $(BUILD)/perfpersist-keeper $(DESTDIR)$(LIBEXECDIR)/perfpersist-keeper
	install -D -m 0755 $(BUILD)/perfctl $(DESTDIR)$(BINDIR)/perfctl
	install -D -m 0755 $(BUILD)/$(SONAME) $(DESTDIR)$(LIBDIR)/$(SONAME)
	ln -sf $(SONAME) $(DESTDIR)$(LIBDIR)/libperfpersist.so
	install -D -m 0644 $(BUILD)/libperfpersist.a $(DESTDIR)$(LIBDIR)/libperfpersist.a
	install -D -m 0644 client/perfpersist.h $(DESTDIR)$(INCLUDEDIR)/perfpersist.h
	install -D -m 0644 proto/perfpersist.bpf.h $(DESTDIR)$(INCLUDEDIR)/perfpersist/perfpersist.bpf.h
	install -d $(DESTDIR)$(LIBDIR)/pkgconfig
	sed -e 's|@PREFIX@|$(PREFIX)|; s|@LIBDIR@|$(LIBDIR)|; s|@INCLUDEDIR@|$(INCLUDEDIR)|; s|@VERSION@|$(VERSION)|' \
		client/libperfpersist.pc.in > $(DESTDIR)$(LIBDIR)/pkgconfig/libperfpersist.pc
	for page in $(MANPAGES); do \
		install -D -m 0644 $$page $(DESTDIR)$(MANDIR)/man$${page##*.}/$${page##*/} || exit 1; done
	for call in $$(sed -n 's/^\t\t\(perfpersist_.*\);/\1/p' client/libperfpersist.map); do \
		echo .so man3/libperfpersist.3 > $(DESTDIR)$(MANDIR)/man3/$$call.3 || exit 1; done
	install -D -m 0644 client/perfctl/completion/perfctl.bash $(DESTDIR)$(BASHDIR)/perfctl
	install -D -m 0644 client/perfctl/completion/_perfctl $(DESTDIR)$(ZSHDIR)/_perfctl
	install -D -m 0644 conf/perfpersistd.conf $(DESTDIR)$(SYSCONFDIR)/perfpersist/perfpersistd.conf
	install -d $(DESTDIR)$(SYSCONFDIR)/perfpersist/events.d $(DESTDIR)$(PREFIX)/lib/perfpersist/events.d
	install -m 0644 conf/events.d/*.conf $(DESTDIR)$(PREFIX)/lib/perfpersist/events.d/
	install -d $(DESTDIR)$(PREFIX)/lib/perfpersist/presets
	install -m 0644 conf/presets/*.conf $(DESTDIR)$(PREFIX)/lib/perfpersist/presets/
	install -d $(DESTDIR)$(UNITDIR)
	for u in units/*.service units/*.socket units/*.mount units/*.path; do \
		sed -e 's|@BINDIR@|$(BINDIR)|; s|@SBINDIR@|$(SBINDIR)|; s|@LIBEXECDIR@|$(LIBEXECDIR)|' $$u \
			> $(DESTDIR)$(UNITDIR)/$${u##*/} || exit 1; done
	install -D -m 0644 units/perfpersist.sysusers $(DESTDIR)$(SYSUSERSDIR)/perfpersist.conf
	install -D -m 0644 units/perfpersist.tmpfiles $(DESTDIR)$(TMPFILESDIR)/perfpersist.conf
	install -D -m 0644 conf/perfpersist.catalog $(DESTDIR)$(CATALOGDIR)/perfpersist.catalog

# Of the tree as it is; another DEB_REVISION is an upgrade, and costs seconds.
DEB_REVISION ?= 1
deb: ## Debian packages, into build/deb
	@$(MAKE) --no-print-directory -j2 programs
	@packaging/build-deb.sh $(BUILD) $(VERSION) $(DEB_REVISION)

# tests/check-tidy.sh names the files; .clang-tidy the checks.
$(BUILD)/compile_flags.txt: Makefile
	@mkdir -p $(@D)
	printf '%s\n' -std=gnu17 $(CPPFLAGS) -I$(CURDIR) -I$(abspath $(BUILD)/gen) -I$(abspath $(PAGE)) \
		-DPAGE_DIR='"$(abspath $(PAGE))"' \
		$(call pkg-cflags,libsystemd inih libtraceevent libdw libbpf check) >$@

format: ## clang-format over all C
	git ls-files '*.c' '*.h' | xargs clang-format -i

clean: ## remove what was built
	rm -rf $(BUILD)

-include $(shell find $(addprefix $(BUILD)/,obj obj-fuzz fuzz bpf tests) -name '*.d' -type f 2>/dev/null)
