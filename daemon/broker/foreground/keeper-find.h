/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* In the foreground: finds the keeper that an earlier daemon has left, which goes on. */
#pragma once

/*
 * A pidfd of the keeper that answers in the instance's place: it tells its end. May wait for a
 * moment. -ENOENT: nobody is there, or (logged) somebody who is of no use; -errno.
 */
int keeper_find(const char *instance);
