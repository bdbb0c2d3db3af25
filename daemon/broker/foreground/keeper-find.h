/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Foreground mode: finds a keeper that an earlier daemon left running. */
#pragma once

/*
 * A pidfd of the keeper that answers on the instance's socket; it becomes readable when the keeper
 * ends. May block for a moment. -ENOENT: nobody answers, or (logged) the process there is unusable;
 * -errno.
 */
int keeper_find(const char *instance);
