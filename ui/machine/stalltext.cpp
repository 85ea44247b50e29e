// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/machine/stalltext.h"

#include <QCoreApplication>

namespace klineage::ui {

namespace {

struct StallWord {
    std::string_view reason;
    const char *text;
};

// The reasons of CUPTI's samples of the program counter (core/device/counters/hotspots.h), short enough for a column.
constexpr StallWord stallWords[] = {
    {"barrier", QT_TRANSLATE_NOOP("klineage::ui::Stall", "a barrier")},
    {"branch_resolving", QT_TRANSLATE_NOOP("klineage::ui::Stall", "a branch")},
    {"dispatch_stall", QT_TRANSLATE_NOOP("klineage::ui::Stall", "dispatch")},
    {"drain", QT_TRANSLATE_NOOP("klineage::ui::Stall", "stores to drain")},
    {"gmma", QT_TRANSLATE_NOOP("klineage::ui::Stall", "warpgroup products")},
    {"imc_miss", QT_TRANSLATE_NOOP("klineage::ui::Stall", "constant cache")},
    {"lg_throttle", QT_TRANSLATE_NOOP("klineage::ui::Stall", "global queue full")},
    {"long_scoreboard", QT_TRANSLATE_NOOP("klineage::ui::Stall", "global memory")},
    {"math_pipe_throttle", QT_TRANSLATE_NOOP("klineage::ui::Stall", "math pipe full")},
    {"membar", QT_TRANSLATE_NOOP("klineage::ui::Stall", "a memory fence")},
    {"mio_throttle", QT_TRANSLATE_NOOP("klineage::ui::Stall", "shared queue full")},
    {"misc", QT_TRANSLATE_NOOP("klineage::ui::Stall", "other reasons")},
    {"no_instructions", QT_TRANSLATE_NOOP("klineage::ui::Stall", "instruction fetch")},
    {"not_selected", QT_TRANSLATE_NOOP("klineage::ui::Stall", "its turn")},
    {"selected", QT_TRANSLATE_NOOP("klineage::ui::Stall", "nothing: it issued")},
    {"short_scoreboard", QT_TRANSLATE_NOOP("klineage::ui::Stall", "shared memory")},
    {"sleeping", QT_TRANSLATE_NOOP("klineage::ui::Stall", "a sleep")},
    {"tex_throttle", QT_TRANSLATE_NOOP("klineage::ui::Stall", "texture queue full")},
    {"wait", QT_TRANSLATE_NOOP("klineage::ui::Stall", "fixed latency")},
    {"warpgroup_arrive", QT_TRANSLATE_NOOP("klineage::ui::Stall", "its warpgroup")},
};

} // namespace

QString stallText(std::string_view reason)
{
    for (const StallWord &word : stallWords) {
        if (word.reason == reason)
            return QCoreApplication::translate("klineage::ui::Stall", word.text);
    }
    return QString::fromUtf8(reason.data(), static_cast<qsizetype>(reason.size()))
        .replace(QLatin1Char('_'), QLatin1Char(' '));
}

} // namespace klineage::ui
