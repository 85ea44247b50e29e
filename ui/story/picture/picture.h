// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QPointF>
#include <QRectF>
#include <QString>
#include <QStringList>
#include <QVariant>

#include <cstddef>
#include <optional>
#include <vector>

namespace klineage::ui {

/// A colour by what it means, so that one picture is right in both themes and on paper.
struct Ink {
    enum class Role { Text, Dim, Faint, Border, Accent, Good, Warn, Bad, Series };
    Role role = Role::Text;
    std::size_t series = 0; ///< of Series: which
    double opacity = 1;     ///< over the panel's ground

    [[nodiscard]] static Ink ofSeries(std::size_t series) { return {Role::Series, series, 1}; }
    [[nodiscard]] Ink faded(double by) const { return {role, series, opacity * by}; }
    friend bool operator==(const Ink &, const Ink &) = default;
};

/// Shapes differ as well as colours.
enum class Glyph {
    Disc,     ///< a state, a valid step
    Best,     ///< K*
    Ungated,  ///< no recorded trial
    Rejected, ///< measured, and not taken
    Crossed,  ///< an attempt that failed at the gate
    Branch,   ///< a trial that nobody has named
    Diamond,  ///< audited
    Cross,    ///< a wrapper
    Triangle, ///< a step of a run that failed
    Square,   ///< published
    Ring,     ///< fell short
    Dot,      ///< anything else
};

/// What can be pointed at: hovering says its caption, a click tells its keys.
struct PictureItem {
    QString key; ///< lineage key, or "run:ID"; empty: of nothing that can be selected
    QString row; ///< Selection row id, or a step's number
    QString caption;
    QString
        label{}; ///< beside its mark, where marks are far enough apart (Picture::areLabelled); the first line counts most
};

struct PictureMark {
    QPointF at;
    Glyph glyph = Glyph::Disc;
    Ink ink;
    int item = -1;
    bool yields = false; ///< texts may stand on it
};

/// From mark to mark, bent where there is room for it.
struct PictureEdge {
    int from = 0;
    int to = 0;
    Ink ink;
    bool dashed = false;
};

struct PictureLine {
    std::vector<QPointF> points;
    Ink ink;
    Qt::PenStyle dash = Qt::SolidLine;
    double width = 1;
    bool stepped = false; ///< holds its value to the right
};

struct PictureBar {
    QRectF area; ///< normalized
    Ink ink;
    bool hollow = false; ///< an outline with a hatching: published, not recorded here
    int item = -1;
};

struct TextRun {
    enum class Weight { Plain, Strong, Small };
    QString text;
    Ink ink;
    Weight weight = Weight::Plain;
    int mostLines = 1;
    double least = 0; ///< width in pixels from which on it is shown
};

/// A block of text beside a point.
struct PictureText {
    QPointF at;
    std::vector<Qt::Alignment>
        sides; ///< where it may stand as seen from the point; the first that is free is taken
    std::vector<TextRun> runs;
    double width = 0; ///< in units of the picture; 0: as wide as it is
    int priority = 0; ///< higher ones are placed first; what finds no place is left out
    double gap = 6;   ///< pixels from the point
    int unless = -1;  ///< index of the text instead of which it stands: where that one found no place
};

/// A line across the picture at a value.
struct PictureGuide {
    Qt::Orientation orientation = Qt::Horizontal;
    double at = 0;
    QString name; ///< at its end
    Ink ink;
    Qt::PenStyle dash = Qt::DashLine;
};

struct PictureAxis {
    enum class Kind {
        None,
        Latency, ///< log10 of nanoseconds
        Ratio,   ///< log10 of a speedup
        Linear,
        Names, ///< `names`
    };
    struct Name {
        double at = 0;
        QString text;
        QString below; ///< a second line; may be empty
    };
    Kind kind = Kind::None;
    QString title;
    QString unit; ///< of Linear, after the number
    std::vector<Name> names;
};

struct LegendEntry {
    QString text;
    Ink ink;
    enum class Sign { Line, Bar, HollowBar, Mark } sign = Sign::Line;
    Qt::PenStyle dash = Qt::SolidLine;
    Glyph glyph = Glyph::Disc;
};

/// The same as a table: what stands behind the picture, and leaves as CSV.
struct PictureTable {
    struct Cell {
        QString text;
        QVariant value{}; ///< the number behind the text, with all of its digits; invalid: the text
    };
    struct Row {
        std::vector<Cell> cells;
        int item = -1;
    };
    QStringList headers;
    QStringList names; ///< of the columns in a file, with units; may be shorter
    std::vector<Row> rows;
};

/// Something to be drawn, made by a pure function: in units of its own, x to the right and y upwards. Nothing in it depends on a size, a
/// theme or a place on the screen.
struct Picture {
    QString name;            ///< for assistive technology
    QString title;           ///< above the picture while nothing is pointed at
    QString message;         ///< instead of everything else, where there is nothing to draw
    QRectF world;            ///< all of it, normalized: top() is the least y
    QSizeF mostPixels{0, 0}; ///< a unit is never wider and higher than that when all is shown; 0: as it fits
    PictureAxis x;
    PictureAxis y;
    std::optional<double> yFrom; ///< where the y axis begins: what stands below has no figure
    std::optional<double> xFrom; ///< where the x axis begins: what stands left of it has no figure
    std::vector<PictureItem> items;
    std::vector<PictureGuide> guides;
    std::vector<PictureBar> bars;
    std::vector<PictureLine> lines;
    std::vector<PictureEdge> edges;
    std::vector<PictureMark> marks;
    std::vector<PictureText> texts;
    std::vector<LegendEntry> legend;
    bool areLabelled = false; ///< marks, by the labels of their items
    std::vector<int> walk;    ///< items in the order in which the arrow keys go through them
    PictureTable table;

    /// -1: there is none.
    [[nodiscard]] int itemOf(const QString &key, const QString &row) const;
    /// Where an item is; the centre of the world for one without a mark or a bar.
    [[nodiscard]] QPointF placeOf(int item) const;
};

} // namespace klineage::ui
