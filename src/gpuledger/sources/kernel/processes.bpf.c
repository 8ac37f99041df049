/* SPDX-License-Identifier: Apache-2.0 OR BSD-2-Clause OR GPL-2.0-only
 *
 * Who becomes which program, who ends, who opens an NVIDIA device node, and who holds one: told by the kernel
 * as it happens. `make ebpf` builds processes.json from this; sources/ebpf_records.py reads what is sent.
 *
 * A program is told as /proc would tell it while it lives (exe, cwd, cmdline, uid, cgroup), because it may be
 * dead before anybody asks. Paths are sent as their names, innermost first, each ended by NUL: a kernel knows
 * the folder of a file and not its path. What cannot be told whole is not marked whole.
 */
#include "kernel_words.h"

/* The kernel lends reads of its memory to programs of a GPL-compatible licence only (include/linux/license.h). */
char LICENSE[] SEC("license") = "Dual BSD/GPL";

enum { EXEC = 1, EXIT = 3, OPEN = 4, HOLD = 5 }; /* as in sources/process_events.py */
enum { PROGRAM = 1, ARGS_READ = 2, ARGS_CUT = 4, EXE_WHOLE = 8, CWD_WHOLE = 16, CGROUP_WHOLE = 32 };

#define ARGS_ROOM 4096	/* what is kept of a command line (sources/redaction.py) */
#define NAME_ROOM 256	/* NAME_MAX and the NUL */
#define PATH_ROOM 1024	/* of names, before the last */
#define PATH_STEPS 96	/* names and mounts */
#define TEXT_ROOM (ARGS_ROOM + 3 * (PATH_ROOM + NAME_ROOM) + NAME_ROOM)
#define SLOTS 128
#define SLOT_TRIES 16

struct head {
	u8 kind;
	u8 flags;
	u16 args_len;
	u32 tgid;
	u64 boot_ns;
	u64 start_ns; /* an EXIT ends here */
	u32 major;
	u32 minor; /* an OPEN without a program ends here, and an EXEC that found no room to write in */
	u32 parent;
	u32 uid;
	u16 exe_len;
	u16 cwd_len;
	u16 cgroup_len;
	u16 hierarchy; /* of the cgroup; 0 is v2 */
};
#define EXIT_BYTES 24
#define SHORT_BYTES 32

struct record {
	struct head head;
	char text[TEXT_ROOM];
};
struct walk {
	u32 at;	  /* where the next name goes */
	u32 from; /* where this path began */
	u64 place;
	u64 mount;
	u32 is_whole;
};
struct slot {
	u64 taken;
	struct walk walk;
	struct record record;
};

/* max_entries of the ring is the loader's to say */
struct {
	NUMBER(type, MAP_RINGBUF);
	NUMBER(max_entries, 1 << 24);
} ring SEC(".maps");

/* Major numbers of the nodes meant, written by user space. */
struct {
	NUMBER(type, MAP_HASH);
	NUMBER(max_entries, 64);
	TYPE(key, u32);
	TYPE(value, u32);
} majors SEC(".maps");

/* Processes whose program went out with an open: tgid to start. Forgotten at exec; an evicted one is told again. */
struct {
	NUMBER(type, MAP_LRU_HASH);
	NUMBER(max_entries, 16384);
	TYPE(key, u32);
	TYPE(value, u64);
} told SEC(".maps");

/* Places to write a record in. One a CPU would not do: an open can be preempted by another one. */
struct {
	NUMBER(type, MAP_ARRAY);
	NUMBER(max_entries, SLOTS);
	TYPE(key, u32);
	TYPE(value, struct slot);
} slots SEC(".maps");

/* Events that found no room in the ring, each counted once. Read by user space from shared memory. */
u64 lost = 0;

/* A walk from a file or a cgroup outwards. It lies in the slot and not on the stack: the verifier follows what it
 * knows of a number on the stack through every step, and gives up; of a map's memory it knows nothing. */
static inlined int append(struct slot *slot, const void *name)
{
	u32 at = slot->walk.at;
	long length;

	if (at > TEXT_ROOM - NAME_ROOM || at - slot->walk.from > PATH_ROOM)
		return 0;
	length = read_kernel_text(&slot->record.text[at], NAME_ROOM, name);
	if (length <= 0)
		return 0;
	slot->walk.at = at + length;
	return 1;
}

/* One name or mount outwards, up to the root of the mount namespace, which is where /proc ends too. */
static long step_out(u32 number, struct slot **context)
{
	struct slot *slot = *context;
	struct dentry *dentry = (void *)slot->walk.place;
	struct mount *mount = (void *)slot->walk.mount;
	struct dentry *folder = READ(dentry, d_parent);

	if (dentry == READ(mount, mnt.mnt_root)) {
		struct mount *below = READ(mount, mnt_parent);

		if (below == mount || !below) {
			slot->walk.is_whole = !!below;
			return 1;
		}
		slot->walk.place = (u64)READ(mount, mnt_mountpoint);
		slot->walk.mount = (u64)below;
		return 0;
	}
	if (!append(slot, READ(dentry, d_name.name)))
		return 1;
	if (folder == dentry) { /* in no folder, such as a memfd */
		slot->walk.is_whole = !number;
		return 1;
	}
	slot->walk.place = (u64)folder;
	return 0;
}

static long step_up(u32 number, struct slot **context)
{
	struct slot *slot = *context;
	struct kernfs_node *node = (void *)slot->walk.place, *parent;

	if (HAS(struct kernfs_node___since_6_15, __parent))
		parent = READ((struct kernfs_node___since_6_15 *)node, __parent);
	else
		parent = READ(node, parent);
	if (!parent) {
		slot->walk.is_whole = 1;
		return 1;
	}
	if (!append(slot, READ(node, name)))
		return 1;
	slot->walk.place = (u64)parent;
	return 0;
}

/* From a place to the root; whether it came there. `at` is where the first name goes. */
static inlined u32 walk(struct slot *slot, u32 at, void *step, u64 place, u64 mount)
{
	slot->walk.at = slot->walk.from = at;
	slot->walk.place = place;
	slot->walk.mount = mount;
	slot->walk.is_whole = 0;
	if (place)
		loop(PATH_STEPS, step, &slot, 0);
	return slot->walk.is_whole;
}

static apart u32 add_path(struct slot *slot, u32 at, u64 dentry, u64 mounted)
{
	return walk(slot, at, step_out, dentry, mounted - PLACE(struct mount, mnt));
}

static apart u32 add_cgroup(struct slot *slot, u32 at, u64 node)
{
	return walk(slot, at, step_up, node, 0);
}

/* The cgroup that says most: v2 where the task is in one below the root, else its deepest one of v1. */
static inlined struct cgroup *telling_cgroup(struct css_set *set)
{
	struct cgroup *best = READ(set, dfl_cgrp);
	int deepest = READ(best, level);

	if (deepest)
		return best;
	for (u32 number = 0; number < 16; number++) {
		struct cgroup_subsys_state *state = 0;
		struct cgroup *one;
		int level;

		if (number >= BYTES(struct css_set, subsys) / sizeof(void *))
			break;
		read_kernel(&state, sizeof(state), (char *)set + PLACE(struct css_set, subsys) + number * sizeof(void *));
		one = READ(state, cgroup);
		level = READ(one, level);
		if (level > deepest) {
			deepest = level;
			best = one;
		}
	}
	return best;
}

/* The command line, as /proc/PID/cmdline has it: a title that a process wrote over its end goes on behind it. */
static inlined u32 add_args(struct record *record, struct mm_struct *mm)
{
	unsigned long start = READ(mm, arg_start), end = READ(mm, arg_end), room = READ(mm, env_end) - start;
	u64 length = end - start;
	u8 flags = 0;
	long title;

	if (!start || end <= start)
		return 0;
	if (length > ARGS_ROOM) {
		length = ARGS_ROOM;
		flags = ARGS_CUT;
	}
	if (read_user(record->text, length, (void *)start))
		return 0;
	record->head.flags |= ARGS_READ | flags;
	if (flags || !record->text[(length - 1) & (ARGS_ROOM - 1)])
		return length;
	title = read_user_text(record->text, room < ARGS_ROOM ? (u32)room & (ARGS_ROOM - 1) : ARGS_ROOM, (void *)start);
	return title > 0 && title <= ARGS_ROOM ? title : length;
}

/* Everything that is told of a task's program; the bytes used. Only of the current task user memory can be read. */
static apart u32 fill(struct slot *slot, u64 address, u32 is_current)
{
	struct head *head = &slot->record.head;
	struct task_struct *task = (void *)address;
	struct task_struct *parent = READ(task, real_parent);
	struct mm_struct *mm = READ(task, mm);
	struct fs_struct *fs = READ(task, fs);
	const struct cred *cred = READ(task, real_cred);
	struct cgroup *cgroup = telling_cgroup(READ(task, cgroups));
	struct cgroup_root *root = READ(cgroup, root);
	struct file *exe = READ(mm, exe_file);
	u32 at = 0;

	head->flags = PROGRAM;
	head->parent = READ(parent, tgid);
	head->uid = READ(cred, uid.val);
	head->hierarchy = READ(root, hierarchy_id);
	if (is_current)
		at = add_args(&slot->record, mm);
	head->args_len = at;
	if (add_path(slot, at, (u64)READ(exe, f_path.dentry), (u64)READ(exe, f_path.mnt)))
		head->flags |= EXE_WHOLE;
	head->exe_len = slot->walk.at - at;
	at = slot->walk.at;
	if (add_path(slot, at, (u64)READ(fs, pwd.dentry), (u64)READ(fs, pwd.mnt)))
		head->flags |= CWD_WHOLE;
	head->cwd_len = slot->walk.at - at;
	at = slot->walk.at;
	if (add_cgroup(slot, at, (u64)READ(cgroup, kn)))
		head->flags |= CGROUP_WHOLE;
	head->cgroup_len = slot->walk.at - at;
	return sizeof(struct head) + slot->walk.at;
}

static inlined struct slot *take(void)
{
	u32 first = this_cpu() * 4;

	for (u32 number = 0; number < SLOT_TRIES; number++) {
		u32 key = (first + number) % SLOTS;
		struct slot *slot = map_lookup(&slots, &key);

		if (slot && !__sync_val_compare_and_swap(&slot->taken, 0, 1))
			return slot;
	}
	return 0;
}

static inlined void give_back(struct slot *slot)
{
	__sync_lock_test_and_set(&slot->taken, 0);
}

static inlined void begin(struct head *head, u8 kind, struct task_struct *task)
{
	struct task_struct *leader = READ(task, group_leader);

	head->kind = kind;
	head->tgid = READ(task, tgid);
	head->start_ns = READ(leader, start_boottime);
	head->boot_ns = boot_clock_ns();
}

static inlined long send(const void *from, u64 size)
{
	long refused = ring_output(&ring, from, size, 0);

	if (refused)
		__sync_fetch_and_add(&lost, 1);
	return refused;
}

/* With its program where there is a place to write it in, else without. True where the program went out. */
static inlined int send_with_program(struct head *head, u64 task)
{
	struct slot *slot = take();
	u32 size;
	long refused;

	if (!slot) {
		send(head, SHORT_BYTES);
		return 0;
	}
	slot->record.head = *head;
	size = fill(slot, task, 1);
	if (size > sizeof(struct record))
		size = sizeof(struct record);
	refused = send(&slot->record, size);
	give_back(slot);
	return !refused;
}

SEC("tp_btf/sched_process_exec")
int on_exec(u64 *context)
{
	u64 task = current_task();
	struct head head = {};

	begin(&head, EXEC, (void *)task);
	map_delete(&told, &head.tgid);
	send_with_program(&head, task);
	return 0;
}

/* The last thread of a process. Where the last two end at once both may be that. Its files are still open. */
SEC("tp_btf/sched_process_exit")
int on_exit(u64 *context)
{
	struct task_struct *task = (void *)current_task();
	struct signal_struct *signal = READ(task, signal);
	struct head head = {};

	if (READ(signal, live.counter))
		return 0;
	begin(&head, EXIT, task);
	send(&head, EXIT_BYTES);
	return 0;
}

/* Asked on each open of a device node, and by access(2); on the root of v2 for every process there is. */
SEC("cgroup/dev")
int on_open(struct bpf_cgroup_dev_ctx *context)
{
	u32 asked = context->access_type, major = context->major;
	u64 task, *start;
	struct head head = {};

	if ((asked & 0xffff) != 2 || !(asked >> 16 & 6)) /* a character device, to read or to write */
		return 1;
	if (!map_lookup(&majors, &major))
		return 1;
	task = current_task();
	begin(&head, OPEN, (void *)task);
	head.major = major;
	head.minor = context->minor;
	start = map_lookup(&told, &head.tgid);
	if (start && *start == head.start_ns)
		send(&head, SHORT_BYTES);
	else if (send_with_program(&head, task))
		map_update(&told, &head.tgid, &head.start_ns, 0);
	return 1;
}

/* Every open file of every process, when user space asks. */
SEC("iter/task_file")
int on_file(struct bpf_iter__task_file *context)
{
	struct seq_file *seq = context->meta->seq;
	struct task_struct *task = context->task;
	struct file *file = context->file;
	struct inode *inode;
	struct head head = {};
	struct slot *slot;
	u32 device, major, size;

	if (!task || !file)
		return 0;
	inode = READ(file, f_inode);
	if ((READ(inode, i_mode) & 0170000) != 0020000)
		return 0;
	device = READ(inode, i_rdev);
	major = device >> 20;
	if (!map_lookup(&majors, &major))
		return 0;
	begin(&head, HOLD, task);
	head.major = major;
	head.minor = device & 0xfffff;
	slot = take();
	if (!slot) {
		seq_write(seq, &head, sizeof(head));
		return 0;
	}
	slot->record.head = head;
	size = fill(slot, (u64)task, 0);
	if (size > sizeof(struct record))
		size = sizeof(struct record);
	seq_write(seq, &slot->record, size);
	give_back(slot);
	return 0;
}
