/* SPDX-License-Identifier: Apache-2.0 OR BSD-2-Clause OR GPL-2.0-only
 *
 * What processes.bpf.c says to the kernel: the few fields that it reads, and the few helpers that it calls.
 * Offsets written here mean nothing: each access is moved to where the running kernel has the field (CO-RE),
 * so a structure holds the fields used and no others. Helper numbers are the kernel's promise (linux/bpf.h).
 */
#ifndef KERNEL_WORDS_H
#define KERNEL_WORDS_H

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

#define SEC(name) __attribute__((section(name), used))
#define inlined inline __attribute__((always_inline))
#define apart __attribute__((noinline))

/* --- maps, as BTF describes them ------------------------------------------------------------------------ */

#define NUMBER(name, value) int(*name)[value]
#define TYPE(name, type) typeof(type) *name

enum { MAP_HASH = 1, MAP_ARRAY = 2, MAP_LRU_HASH = 9, MAP_RINGBUF = 27 };

/* --- helpers -------------------------------------------------------------------------------------------- */

static void *(*const map_lookup)(void *map, const void *key) = (void *)1;
static long (*const map_update)(void *map, const void *key, const void *value, u64 flags) = (void *)2;
static long (*const map_delete)(void *map, const void *key) = (void *)3;
static u32 (*const this_cpu)(void) = (void *)8;
static u64 (*const current_task)(void) = (void *)35;
static long (*const read_user)(void *into, u32 size, const void *from) = (void *)112;
static long (*const read_kernel)(void *into, u32 size, const void *from) = (void *)113;
static long (*const read_user_text)(void *into, u32 size, const void *from) = (void *)114;
static long (*const read_kernel_text)(void *into, u32 size, const void *from) = (void *)115;
static u64 (*const boot_clock_ns)(void) = (void *)125;
static long (*const seq_write)(void *seq, const void *from, u32 size) = (void *)127;
static long (*const ring_output)(void *ring, const void *from, u64 size, u64 flags) = (void *)130;
static long (*const loop)(u32 most, void *step, void *context, u64 flags) = (void *)181; /* 5.17 */

/* --- what is read of the kernel ------------------------------------------------------------------------- */

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct qstr {
	const unsigned char *name;
};
struct inode {
	u16 i_mode;
	u32 i_rdev;
};
struct dentry {
	struct dentry *d_parent;
	struct qstr d_name;
};
struct vfsmount {
	struct dentry *mnt_root;
};
struct mount {
	struct mount *mnt_parent;
	struct dentry *mnt_mountpoint;
	struct vfsmount mnt;
};
struct path {
	struct vfsmount *mnt;
	struct dentry *dentry;
};
struct file {
	struct path f_path;
	struct inode *f_inode;
};
struct fs_struct {
	struct path pwd;
};
struct mm_struct {
	unsigned long arg_start, arg_end, env_end;
	struct file *exe_file;
};
typedef struct {
	u32 val;
} kuid_t;
struct cred {
	kuid_t uid;
};
typedef struct {
	int counter;
} atomic_t;
struct signal_struct {
	atomic_t live;
};
struct kernfs_node {
	struct kernfs_node *parent;
	const char *name;
};
struct kernfs_node___since_6_15 {
	struct kernfs_node *__parent;
};
struct cgroup_root {
	int hierarchy_id;
};
struct cgroup {
	int level;
	struct kernfs_node *kn;
	struct cgroup_root *root;
};
struct cgroup_subsys_state {
	struct cgroup *cgroup;
};
struct css_set {
	struct cgroup_subsys_state *subsys[16];
	struct cgroup *dfl_cgrp;
};
struct task_struct {
	int tgid;
	u64 start_boottime;
	struct task_struct *real_parent;
	struct task_struct *group_leader;
	struct mm_struct *mm;
	const struct cred *real_cred;
	struct fs_struct *fs;
	struct signal_struct *signal;
	struct css_set *cgroups;
};
struct seq_file {};
struct bpf_iter_meta {
	struct seq_file *seq;
};
struct bpf_iter__task_file {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
	u32 fd;
	struct file *file;
};

#pragma clang attribute pop

struct bpf_cgroup_dev_ctx { /* a promise to user space, never moved */
	u32 access_type;
	u32 major;
	u32 minor;
};

/* A field of a structure of the kernel; zeroes where the address is no good. */
#define READ(from, field)                                                   \
	({                                                                  \
		typeof((from)->field) read_;                                \
		read_kernel((void *)&read_, sizeof(read_), (const void *)&(from)->field); \
		read_;                                                      \
	})
#define PLACE(type, field) __builtin_preserve_field_info(((type *)0)->field, 0)
#define BYTES(type, field) __builtin_preserve_field_info(((type *)0)->field, 1)
#define HAS(type, field) __builtin_preserve_field_info(((type *)0)->field, 2)

#endif
