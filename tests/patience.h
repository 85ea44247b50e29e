// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QTest>

/// How long a test waits for what must happen, on a machine that is busy with other things, before it fails. Qt's own five seconds are
/// for a quiet one. What must *not* happen needs another way to be seen than waiting for it.
inline constexpr int patienceMs = 60'000;
inline constexpr double patienceSeconds = patienceMs / 1000.0;

#undef QTRY_VERIFY
#undef QTRY_VERIFY2
#undef QTRY_COMPARE
#define QTRY_VERIFY(expr) QTRY_VERIFY_WITH_TIMEOUT((expr), patienceMs)
#define QTRY_VERIFY2(expr, message) QTRY_VERIFY2_WITH_TIMEOUT((expr), (message), patienceMs)
#define QTRY_COMPARE(expr, expected) QTRY_COMPARE_WITH_TIMEOUT((expr), (expected), patienceMs)
