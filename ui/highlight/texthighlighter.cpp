// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/highlight/texthighlighter.h"

#include <algorithm>

namespace klineage::ui {

namespace {

constexpr int chunkLines = 2000;
// A highlighter that starts this many lines early, outside any comment, is nearly always right when it arrives.
constexpr int runUp = 200;

} // namespace

void TextHighlighter::start(std::shared_ptr<const TextLines> text, Language language, int firstVisible,
                            int visibleCount)
{
    m_slot.start(backgroundPool(), [=, this](const std::stop_token &stop, const JobSlot::Post &post) {
        LineHighlighter highlighter(language);
        const auto highlight = [&](int first, int end, LineHighlighter::State &state) {
            std::vector<LineRuns> runs(static_cast<std::size_t>(std::max(0, end - first)));
            for (int i = first; i < end && !stop.stop_requested(); ++i)
                state =
                    highlighter.highlight(text->text(i), state, runs[static_cast<std::size_t>(i - first)]);
            if (!stop.stop_requested())
                post([this, first, runs = std::move(runs)] { emit chunkReady(first, runs); });
        };
        if (firstVisible > chunkLines) {
            LineHighlighter::State guess;
            highlight(std::max(0, firstVisible - runUp), std::min(text->count(), firstVisible + visibleCount),
                      guess);
        }
        LineHighlighter::State state;
        for (int first = 0; first < text->count() && !stop.stop_requested(); first += chunkLines)
            highlight(first, std::min(text->count(), first + chunkLines), state);
        post([this] { emit finished(); });
    });
}

} // namespace klineage::ui
