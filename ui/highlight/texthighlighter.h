// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/highlight/jobslot.h"
#include "ui/highlight/linehighlighter.h"

#include <QObject>

namespace klineage::ui {

/// Highlights a long text on the background thread: first a guess at the lines that are visible, then everything from the top, in
/// chunks. Lives on the GUI thread, where the signals arrive.
class TextHighlighter : public QObject
{
    Q_OBJECT

public:
    using QObject::QObject;

    /// Replaces the text before. firstVisible and visibleCount say which lines are needed first.
    void start(std::shared_ptr<const TextLines> text, Language language, int firstVisible, int visibleCount);
    void stop() { m_slot.cancel(); }

signals:
    /// Lines [first, first + runs.size()); a later signal for the same lines replaces an earlier one.
    void chunkReady(int first, const std::vector<klineage::ui::LineRuns> &runs);
    void finished();

private:
    JobSlot m_slot;
};

} // namespace klineage::ui
