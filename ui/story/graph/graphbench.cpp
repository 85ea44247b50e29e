// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/story/graph/graphbench.h"

#include "ui/story/graph/lanes.h"
#include "ui/story/picture/picturecanvas.h"

#include <QImage>

#include <algorithm>
#include <random>

#include <time.h>

namespace klineage::ui {

namespace {

constexpr QSize benchSize(1600, 1000);
constexpr int islandCount = 8;
constexpr double zoomFactor = 1.6;

LaneGraph madeUpSearch(int candidates)
{
    std::mt19937 random(7);
    LaneGraph graph{QStringLiteral("bench"), QStringLiteral("made up"), {}};
    std::vector<std::vector<int>> members(islandCount);
    for (int i = 0; i < candidates; ++i) {
        LaneNode node;
        const auto island = random() % islandCount;
        const std::vector<int> &own = members[island];
        // Mostly from a recent one, now and then from any.
        if (!own.empty()) {
            const std::size_t back = random() % 5 == 0 ? own.size() : std::min<std::size_t>(own.size(), 12);
            node.parent = own[own.size() - 1 - random() % back];
        }
        node.island = static_cast<int>(island) + 1;
        const auto outcome = random() % 10;
        node.glyph = outcome < 5 ? Glyph::Disc : outcome < 8 ? Glyph::Triangle : Glyph::Cross;
        node.ink = {outcome < 5 ? Ink::Role::Good : outcome < 8 ? Ink::Role::Bad : Ink::Role::Warn};
        node.row = QString::number(i);
        node.label = node.row + QStringLiteral("\nmade up");
        if (outcome < 5)
            members[island].push_back(i);
        graph.nodes.push_back(std::move(node));
    }
    return graph;
}

/// Rendering in software is this thread alone, and what others do on the machine is none of its cost.
double threadMs()
{
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) / 1e6;
}

double msOf(const std::function<void()> &work)
{
    const double before = threadMs();
    work();
    return threadMs() - before;
}

} // namespace

std::vector<double> graphFrameTimes(int candidates)
{
    PictureCanvas canvas(QStringLiteral("bench"));
    canvas.setAttribute(Qt::WA_DontShowOnScreen);
    canvas.resize(benchSize);
    canvas.setPicture(lanePicture(madeUpSearch(candidates)));
    QImage image(benchSize, QImage::Format_ARGB32_Premultiplied);
    std::vector<double> times;
    const auto frame = [&] {
        image.fill(Qt::white);
        times.push_back(msOf([&] { canvas.render(&image); }));
    };
    frame();
    times.clear(); // fonts were loaded in that one
    frame();
    while (canvas.view().xScale() < 200) {
        const double before = canvas.view().xScale();
        canvas.zoomAt(QPointF(benchSize.width() * 0.4, benchSize.height() * 0.4), zoomFactor);
        frame();
        const QRectF seen = canvas.view().seen();
        canvas.centreOn(seen.center() + QPointF(seen.width() / 3, seen.height() / 5));
        frame();
        if (canvas.view().xScale() <= before)
            break;
    }
    return times;
}

double graphLayoutTime(int candidates)
{
    const LaneGraph graph = madeUpSearch(candidates);
    return msOf([&] { (void)lanePicture(graph); });
}

} // namespace klineage::ui
