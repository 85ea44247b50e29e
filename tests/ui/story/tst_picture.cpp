// SPDX-License-Identifier: GPL-3.0-or-later
// What all pictures of the story share: view, ticks, places of texts, canvas with its keys, map and table.
#include "tests/ui/common/modal.h"
#include "tests/ui/common/uitest.h"
#include "tests/ui/common/writtentexts.h"
#include "ui/story/picture/axisticks.h"
#include "ui/story/picture/overviewmap.h"
#include "ui/story/picture/paintparts.h"
#include "ui/story/picture/picturecanvas.h"
#include "ui/story/picture/picturemodel.h"
#include "ui/story/picture/picturepainter.h"
#include "ui/story/picture/textplaces.h"
#include "ui/style/theme.h"

#include <QAbstractItemModelTester>
#include <QAction>
#include <QApplication>
#include <QBuffer>
#include <QImage>
#include <QMap>
#include <QPainter>
#include <QRegularExpression>
#include <QSignalSpy>
#include <QSvgGenerator>
#include <QTest>
#include <QWheelEvent>

#include <cmath>
#include <random>

using namespace klineage::ui;

namespace {

/// Marks in a row, at 0, 1, 2, …
Picture row(int count)
{
    Picture picture;
    picture.name = QStringLiteral("row");
    picture.title = QStringLiteral("a row of marks");
    picture.x.kind = PictureAxis::Kind::Names;
    picture.y.kind = PictureAxis::Kind::Latency;
    picture.world = QRectF(QPointF(-0.5, 3), QPointF(count - 0.5, 6));
    picture.table.headers = {"Id", "Value"};
    for (int i = 0; i < count; ++i) {
        const QString id = QStringLiteral("K%1").arg(i);
        picture.items.push_back({"toy/pocl", id, id + " in words", id});
        picture.marks.push_back({{static_cast<double>(i), 4.0 + i % 2}, Glyph::Disc, {Ink::Role::Good}, i});
        if (i > 0)
            picture.edges.push_back({i - 1, i, {Ink::Role::Faint}, false});
        picture.walk.push_back(i);
        picture.x.names.push_back({static_cast<double>(i), id, {}});
        picture.table.rows.push_back({{{id}, {QString::number(i), i}}, i});
    }
    return picture;
}

void turnWheel(PictureCanvas &canvas, const QPointF &at, int angle, Qt::KeyboardModifiers modifiers)
{
    QWheelEvent event(at, canvas.mapToGlobal(at), {}, {0, angle}, Qt::NoButton, modifiers, Qt::NoScrollPhase,
                      false);
    QApplication::sendEvent(&canvas, &event);
}

/// What is written where, by the text: the left end of its baseline.
QMap<QString, QPointF> writtenTexts(const Picture &picture, const QSizeF &size)
{
    const PictureLook look{size, QApplication::font(), -1, -1, {}};
    PictureView view;
    view.fit(picture.world, plotOf(picture, look));
    QBuffer file;
    QSvgGenerator generator;
    generator.setOutputDevice(&file);
    generator.setSize(size.toSize());
    QPainter painter(&generator);
    paintPicture(painter, picture, view, look);
    painter.end();
    static const QRegularExpression text(
        QStringLiteral("<text [^>]*\\bx=\"([-0-9.]+)\" y=\"([-0-9.]+)\"[^>]*>([^<]*)</text>"));
    QMap<QString, QPointF> texts;
    for (const QRegularExpressionMatch &match : text.globalMatch(QString::fromUtf8(file.data())))
        texts[match.captured(3).trimmed()] = {match.captured(1).toDouble(), match.captured(2).toDouble()};
    return texts;
}

struct Shown {
    explicit Shown(int count)
    {
        canvas.resize(800, 400);
        canvas.setPicture(row(count));
        canvas.show();
        canvas.activateWindow();
        canvas.setFocus();
        ready = takeKeys(canvas);
    }
    PictureCanvas canvas{QStringLiteral("test")};
    bool ready = false;
};

} // namespace

class TestPicture : public UiTest
{
    Q_OBJECT

private slots:
    /// A name that is wider than its lines goes on behind a dot, an underscore or a slash, and is hyphenated where it has none.
    void namesBreakAtTheirJoints()
    {
        Picture picture = row(3);
        const auto linesOf = [&](const QString &name) {
            picture.texts.clear();
            PictureText text;
            text.at = {1.0, 4.5};
            text.sides = {Qt::AlignRight};
            text.runs = {{QStringLiteral("2×"), {Ink::Role::Text}},
                         {name, {Ink::Role::Text}, TextRun::Weight::Plain, 6}};
            text.width = 0.4;
            picture.texts.push_back(text);
            QStringList lines;
            const QMap<QString, QPointF> written = writtenTexts(picture, {600, 400});
            for (auto line = written.begin(); line != written.end(); ++line) {
                QString part = line.key();
                part.remove(QChar(0x200b));
                if (part.size() > 2 && (name.contains(part) || part.endsWith(QLatin1Char('-'))))
                    lines << part;
            }
            std::sort(lines.begin(), lines.end(), [&](const QString &a, const QString &b) {
                return name.indexOf(a.chopped(1)) < name.indexOf(b.chopped(1));
            });
            return lines;
        };
        for (const QString &name :
             {QStringLiteral("rowmax_warpsum_exchanged"), QStringLiteral("kernels/softmax/launched"),
              QStringLiteral("mmasync.aligned.rowcolumn")}) {
            const QStringList lines = linesOf(name);
            QVERIFY2(lines.size() > 1, qPrintable(lines.join(u'|')));
            QCOMPARE(lines.join(QString()), name);
            for (const QString &line : lines.first(lines.size() - 1))
                QVERIFY2(QStringLiteral("._/").contains(line.back()), qPrintable(lines.join(u'|')));
        }
        const QStringList unjoined = linesOf(QStringLiteral("maximaofrowsexchangedbywarps"));
        QVERIFY2(unjoined.size() > 1 && unjoined.front().endsWith(QLatin1Char('-')),
                 qPrintable(unjoined.join(u'|')));
    }

    /// A word that is a little wider than its column stays whole where nothing is beside it.
    void wordsReachOverTheirColumn()
    {
        Picture picture = row(3);
        PictureText text;
        text.at = {1.0, 4.5};
        text.sides = {Qt::AlignRight};
        text.runs = {{QStringLiteral("2×"), {Ink::Role::Text}},
                     {QStringLiteral("persistent blocks"), {Ink::Role::Text}, TextRun::Weight::Plain, 6}};
        const PictureLook look{{600, 400}, QApplication::font(), -1, -1, {}};
        PictureView view;
        view.fit(picture.world, plotOf(picture, look));
        text.width =
            0.85 * QFontMetricsF(look.font).horizontalAdvance(QStringLiteral("persistent")) / view.xScale();
        picture.texts = {text};
        QVERIFY(writtenTexts(picture, look.size).contains(QStringLiteral("persistent")));
        picture.texts.front().width *= 0.65; // too narrow for that: between syllables
        const QStringList parts = writtenTexts(picture, look.size).keys();
        QVERIFY2(parts.contains(QStringLiteral("per-")), qPrintable(parts.join(u'|')));
    }

    /// Marks that texts may stand on are left in sight where a text has another place.
    void textsLeaveMarksInSight()
    {
        Picture picture = row(3);
        const PictureLook look{{600, 400}, QApplication::font(), -1, -1, {}};
        PictureView view;
        view.fit(picture.world, plotOf(picture, look));
        PictureText text;
        text.at = {1.0, 4.5};
        text.sides = {Qt::AlignTop, Qt::AlignBottom};
        text.runs = {{QStringLiteral("label"), {Ink::Role::Text}}};
        text.width = 0.9;
        picture.texts = {text};
        const double free = writtenTexts(picture, look.size).value(QStringLiteral("label")).y();
        QPointF covered = view.toPixels(text.at) - QPointF(0, 12);
        picture.marks.push_back({view.toUnits(covered), Glyph::Branch, {}, -1, true});
        const double moved = writtenTexts(picture, look.size).value(QStringLiteral("label")).y();
        QVERIFY2(moved > view.toPixels(text.at).y() && free < view.toPixels(text.at).y(),
                 qPrintable(QStringLiteral("%1 %2").arg(free).arg(moved)));
    }

    void zoomKeepsWhatIsAtTheCursor()
    {
        std::mt19937 random(3);
        std::uniform_real_distribution<double> x(0, 600);
        std::uniform_real_distribution<double> y(0, 300);
        PictureView view;
        const QRectF world(-1, 2, 40, 5);
        view.fit(world, {0, 0, 600, 300});
        QVERIFY(view.isFitted());
        for (int i = 0; i < 200; ++i) {
            const QPointF at(x(random), y(random));
            const QPointF unit = view.toUnits(at);
            const bool isNearer = i % 3 != 0;
            view.zoomAt(at, isNearer ? 1.3 : 0.8);
            QVERIFY(world.adjusted(-1e-6, -1e-6, 1e-6, 1e-6).contains(view.seen()));
            if (isNearer && !view.isFitted()) {
                const QPointF now = view.toPixels(unit);
                QVERIFY2(std::hypot(now.x() - at.x(), now.y() - at.y()) < 1e-6,
                         qPrintable(QString::number(i)));
            }
        }
        view.zoomAt({300, 150}, 1e9);
        QVERIFY(view.seen().width() >= 0.999); // a unit is the nearest
        view.zoomAt({300, 150}, 1e-9);
        QVERIFY(view.isFitted());
        QCOMPARE(view.seen(), world);
    }

    void aSmallPictureIsNotBlownUp()
    {
        PictureView view;
        view.fit({0, 0, 2, 1}, {0, 0, 1000, 500}, {100, 100});
        QCOMPARE(view.xScale(), 100.0);
        QCOMPARE(view.toPixels(QPointF(1, 0.5)), QPointF(500, 250));
    }

    void resizingKeepsScaleAndMiddle()
    {
        PictureView view;
        view.fit({0, 0, 100, 100}, {0, 0, 400, 400});
        view.zoomAt({200, 200}, 4);
        const double scale = view.xScale();
        const QPointF middle = view.seen().center();
        view.movePlot({0, 0, 500, 300});
        QCOMPARE(view.xScale(), scale);
        QVERIFY(std::abs(view.seen().center().x() - middle.x()) < 1e-9);
        view.fit({0, 0, 100, 100}, {0, 0, 400, 400});
        view.movePlot({0, 0, 900, 300});
        QCOMPARE(view.seen(), QRectF(0, 0, 100, 100));
    }

    void ticks_data()
    {
        QTest::addColumn<int>("kind");
        QTest::addColumn<double>("low");
        QTest::addColumn<double>("high");
        QTest::addColumn<QString>("first");
        using Kind = PictureAxis::Kind;
        QTest::newRow("microseconds")
            << static_cast<int>(Kind::Latency) << 3.0 << 6.0 << QStringLiteral("1.00\u202fµs");
        QTest::newRow("ratio") << static_cast<int>(Kind::Ratio) << -1.0 << 1.0 << QStringLiteral("0.10×");
        QTest::newRow("part of a decade")
            << static_cast<int>(Kind::Latency) << 5.0 << 5.1 << QStringLiteral("100\u202fµs");
        QTest::newRow("linear") << static_cast<int>(Kind::Linear) << 0.0 << 10.0 << QStringLiteral("0");
    }

    void ticks()
    {
        QFETCH(int, kind);
        QFETCH(double, low);
        QFETCH(double, high);
        PictureAxis axis;
        axis.kind = static_cast<PictureAxis::Kind>(kind);
        for (const double pixels : {40.0, 150.0, 400.0, 3000.0}) {
            const std::vector<AxisTick> ticks = axisTicks(axis, low, high, pixels, 14);
            for (std::size_t i = 0; i < ticks.size(); ++i) {
                QVERIFY(ticks[i].at >= low - 1e-9 && ticks[i].at <= high + 1e-9);
                if (i > 0)
                    QVERIFY((ticks[i].at - ticks[i - 1].at) / (high - low) * pixels > 10);
            }
        }
        const std::vector<AxisTick> ticks = axisTicks(axis, low, high, 400, 14);
        QVERIFY(!ticks.empty());
        QTEST(ticks.front().text, "first");
        QVERIFY(axisTicks(axis, 1, 1, 400, 14).empty());
    }

    void textsDoNotTouch()
    {
        std::mt19937 random(5);
        std::uniform_real_distribution<double> at(0, 900);
        TextPlaces places({0, 0, 1000, 500});
        std::vector<QRectF> taken;
        for (int i = 0; i < 600; ++i) {
            const QRectF place(at(random), at(random) / 2, 60, 24);
            if (!places.isFree(place))
                continue;
            for (const QRectF &other : taken)
                QVERIFY(!other.intersects(place));
            places.take(place);
            taken.push_back(place);
        }
        QVERIFY(taken.size() > 40);
        QVERIFY(!places.isFree({990, 10, 60, 24}));
    }

    /// F, + and -, arrows, Home, End and Return, to what has the focus.
    void keys()
    {
        Shown shown(40);
        QVERIFY(shown.ready);
        PictureCanvas &canvas = shown.canvas;
        QSignalSpy chosen(&canvas, &PictureCanvas::itemChosen);
        QSignalSpy opened(&canvas, &PictureCanvas::itemOpened);
        QTest::keyClick(&canvas, Qt::Key_Plus);
        QVERIFY(!canvas.view().isFitted());
        QTest::keyClick(&canvas, Qt::Key_Minus);
        QVERIFY(canvas.view().isFitted());
        QTest::keyClick(&canvas, Qt::Key_Right);
        QCOMPARE(chosen.takeLast().at(1).toString(), "K0");
        QTest::keyClick(&canvas, Qt::Key_Right);
        QCOMPARE(chosen.takeLast().at(1).toString(), "K1");
        QTest::keyClick(&canvas, Qt::Key_Left);
        QCOMPARE(chosen.takeLast().at(1).toString(), "K0");
        QTest::keyClick(&canvas, Qt::Key_End);
        QCOMPARE(chosen.takeLast().at(1).toString(), "K39");
        QTest::keyClick(&canvas, Qt::Key_Home);
        QCOMPARE(chosen.takeLast().at(1).toString(), "K0");
        QTest::keyClick(&canvas, Qt::Key_Return);
        QCOMPARE(opened.size(), 1);
        // What is selected comes into view.
        for (int i = 0; i < 12; ++i)
            QTest::keyClick(&canvas, Qt::Key_Plus);
        QTest::keyClick(&canvas, Qt::Key_End);
        QVERIFY(canvas.view().plot().contains(canvas.pixelOf(39)));
        QVERIFY(canvas.accessibleDescription().contains("K39 in words"));
        QTest::keyClick(&canvas, Qt::Key_F);
        QVERIFY(canvas.view().isFitted());
    }

    void mouse()
    {
        Shown shown(40);
        QVERIFY(shown.ready);
        PictureCanvas &canvas = shown.canvas;
        QSignalSpy hovered(&canvas, &PictureCanvas::itemHovered);
        QSignalSpy chosen(&canvas, &PictureCanvas::itemChosen);
        QTest::mouseMove(&canvas, canvas.pixelOf(7).toPoint());
        QCOMPARE(hovered.takeLast().at(1).toString(), "K7");
        QTest::mouseClick(&canvas, Qt::LeftButton, {}, canvas.pixelOf(7).toPoint());
        QCOMPARE(chosen.takeLast().at(1).toString(), "K7");
        QCOMPARE(canvas.selected(), 7);

        const QPointF at = canvas.pixelOf(20);
        turnWheel(canvas, at, 600, Qt::ControlModifier);
        QVERIFY(std::abs(canvas.pixelOf(20).x() - at.x()) < 1
                && std::abs(canvas.pixelOf(20).y() - at.y()) < 1);
        QVERIFY(canvas.map()->isVisible());

        const QRectF before = canvas.view().seen();
        QTest::mousePress(&canvas, Qt::LeftButton, {}, {400, 200});
        QTest::mouseMove(&canvas, {340, 200});
        QTest::mouseRelease(&canvas, Qt::LeftButton, {}, {340, 200});
        QVERIFY(canvas.view().seen().left() > before.left());
        QVERIFY(chosen.isEmpty()); // a drag chooses nothing

        const QRectF dragged = canvas.view().seen();
        turnWheel(canvas, at, 120, Qt::ShiftModifier);
        QVERIFY(canvas.view().seen().left() != dragged.left());
    }

    void theMapGoesThere()
    {
        Shown shown(400);
        QVERIFY(shown.ready);
        PictureCanvas &canvas = shown.canvas;
        canvas.zoomBy(16);
        QVERIFY(canvas.map()->isVisible());
        const QPointF there(350, 4.5);
        QTest::mouseClick(canvas.map(), Qt::LeftButton, {}, canvas.map()->toMap(there).toPoint());
        QVERIFY(canvas.view().seen().contains(there));
        canvas.fit();
        QVERIFY(!canvas.map()->isVisible());
        QVERIFY(canvas.map()->property("notExported").toBool());
    }

    /// A picture that grows keeps what is seen; another one is seen whole.
    void growingKeepsTheView()
    {
        Shown shown(40);
        QVERIFY(shown.ready);
        PictureCanvas &canvas = shown.canvas;
        canvas.setPicture(row(41), true);
        QVERIFY(canvas.view().isFitted());
        canvas.zoomAt(canvas.pixelOf(10), 5);
        const QPointF middle = canvas.view().seen().center();
        canvas.setPicture(row(42), true);
        QVERIFY(!canvas.view().isFitted());
        QVERIFY(std::abs(canvas.view().seen().center().x() - middle.x()) < 1e-6);
        canvas.setPicture(row(5));
        QVERIFY(canvas.view().isFitted());
    }

    /// Those of level guides are broken where there is room for another line, those of upright ones do not run into each other.
    void namesOfGuidesAreWhole()
    {
        Picture picture = row(3);
        picture.y.kind = PictureAxis::Kind::Names;
        picture.guides = {
            {Qt::Vertical, 1.1, QStringLiteral("the second"), {}, Qt::SolidLine},
            {Qt::Vertical, 1, QStringLiteral("the first of them"), {}, Qt::SolidLine},
            {Qt::Horizontal, 3.5, QStringLiteral("3 of 5 are whole, 2 at first\nmore"), {}, Qt::NoPen},
            {Qt::Horizontal, 5, QStringLiteral("lower"), {}, Qt::NoPen}};
        const auto narrow = writtenTexts(picture, {600, 400});
        for (const char *line : {"3 of 5 are whole,", "2 at first", "more", "lower"})
            QVERIFY2(narrow.contains(QLatin1String(line)), qPrintable(narrow.keys().join(u'|')));
        QVERIFY(narrow["2 at first"].y() > narrow["3 of 5 are whole,"].y());
        QVERIFY(narrow["more"].y() > narrow["2 at first"].y());
        const QPointF first = narrow["the first of them"];
        const QPointF second = narrow["the second"];
        const double width = QFontMetricsF(weightedFont(QApplication::font(), TextRun::Weight::Small))
                                 .horizontalAdvance(QStringLiteral("the first of them"));
        QVERIFY(first.y() != second.y() || first.x() + width < second.x());
        // Where a line more would stand on another name, the line is elided.
        picture.guides[3].at = picture.guides[2].at + 0.25;
        QVERIFY(!writtenTexts(picture, {600, 400}).contains(QStringLiteral("2 at first")));
        QVERIFY(writtenTexts(picture, {2000, 400}).contains(QStringLiteral("3 of 5 are whole, 2 at first")));
    }

    /// Random pictures at all sizes: texts that find no place are left out, and what the axes are named by stays.
    void noTextStandsOnAnother()
    {
        std::mt19937 random(7);
        const auto in = [&random](double low, double high) {
            return std::uniform_real_distribution<double>(low, high)(random);
        };
        const auto words = [&](int most) {
            QStringList all;
            for (int i = 0; i <= static_cast<int>(in(0, most)); ++i)
                all << QString(static_cast<int>(in(2, 12)), QChar(u'a' + static_cast<int>(in(0, 26))));
            return all.join(u' ');
        };
        for (int i = 0; i < 150; ++i) {
            Picture picture = row(3 + i % 12);
            picture.y.kind = i % 3 == 0 ? PictureAxis::Kind::Ratio : PictureAxis::Kind::Latency;
            picture.y.title = words(4);
            picture.x.title = i % 2 == 0 ? words(4) : QString();
            for (PictureAxis::Name &name : picture.x.names)
                name.below = i % 4 == 0 ? QString() : words(1);
            for (int j = 0; j < 5; ++j) {
                picture.legend.push_back({words(5), {}, LegendEntry::Sign::Line, Qt::SolidLine, {}});
                picture.guides.push_back({j % 2 == 0 ? Qt::Vertical : Qt::Horizontal,
                                          j % 2 == 0 ? in(-0.5, picture.world.right()) : in(3, 6),
                                          words(3),
                                          {},
                                          Qt::DashLine});
            }
            for (int j = 0; j < 30; ++j)
                picture.texts.push_back({{in(-0.5, picture.world.right()), in(3, 6)},
                                         {Qt::AlignTop, Qt::AlignRight, Qt::AlignLeft, Qt::AlignBottom},
                                         {{words(3), {}, TextRun::Weight::Small, 2, 0}},
                                         j % 2 == 0 ? 0 : 0.9,
                                         j});
            picture.areLabelled = i % 2 == 0;
            const QSize size(static_cast<int>(in(120, 1400)), static_cast<int>(in(60, 600)));
            const PictureLook look{size, QApplication::font(), -1, -1, {}};
            PictureView view;
            view.fit(picture.world, plotOf(picture, look));
            TextRecorder recorder(size);
            QPainter painter(&recorder);
            paintPicture(painter, picture, view, look);
            painter.end();
            QVERIFY(!recorder.texts().empty());
            const QString touching = touchingTexts(recorder.texts(), QRectF(QPointF(), size));
            QVERIFY2(touching.isEmpty(), qPrintable(QStringLiteral("%1, %2x%3: %4")
                                                        .arg(i)
                                                        .arg(size.width())
                                                        .arg(size.height())
                                                        .arg(touching)));
        }
    }

    /// Where the plot would become too low, the legend has fewer rows, and says that there is more of it.
    void theLegendLeavesRoom()
    {
        Picture picture = row(5);
        picture.y.title = QStringLiteral("Latency");
        for (int i = 0; i < 8; ++i)
            picture.legend.push_back({QStringLiteral("the entry of number %1").arg(i), {}});
        QVERIFY(writtenTexts(picture, {400, 500}).contains(QStringLiteral("the entry of number 7")));
        const auto low = writtenTexts(picture, {400, 150});
        QVERIFY(low.contains(QStringLiteral("the entry of number 0")));
        QVERIFY(!low.contains(QStringLiteral("the entry of number 7")));
        QVERIFY2(low.contains(QStringLiteral("… and 6 more")), qPrintable(low.keys().join(u'|')));
        QVERIFY(low.contains(QStringLiteral("K0")));
        const PictureLook look{QSizeF(400, 150), QApplication::font(), -1, -1, {}};
        QVERIFY(plotOf(picture, look).height() > 4 * QFontMetricsF(look.font).height());
        // However many entries there are, most of the picture is the plot.
        for (int i = 8; i < 60; ++i)
            picture.legend.push_back({QStringLiteral("the entry of number %1").arg(i), {}});
        const PictureLook high{QSizeF(400, 500), QApplication::font(), -1, -1, {}};
        QVERIFY(plotOf(picture, high).height() > 0.6 * high.size.height());
        QVERIFY(writtenTexts(picture, {400, 500}).keys().join(u' ').contains(QStringLiteral("… and ")));
    }

    /// Near, each mark is a glyph; far, thousands share pixels, and are still seen.
    void everyScaleShowsSomething()
    {
        for (const int count : {1, 30, 5000, 100000}) {
            PictureCanvas canvas(QStringLiteral("test"));
            canvas.resize(600, 300);
            canvas.setPicture(row(count));
            QImage image(600, 300, QImage::Format_ARGB32_Premultiplied);
            image.fill(Theme::current().panel);
            canvas.render(&image);
            int painted = 0;
            const QRect plot = canvas.view().plot().toRect();
            for (int y = plot.top(); y < plot.bottom(); ++y) {
                for (int x = plot.left(); x < plot.right(); ++x)
                    painted += image.pixelColor(x, y) == Theme::current().good ? 1 : 0;
            }
            QVERIFY2(painted > 9, qPrintable(QString::number(count)));
        }
    }

    void tableFollowsItsRules()
    {
        PictureModel model;
        const QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::QtTest);
        QSignalSpy resets(&model, &QAbstractItemModel::modelReset);
        QSignalSpy inserts(&model, &QAbstractItemModel::rowsInserted);
        model.setTable(row(3).table);
        model.setTable(row(5).table);
        QCOMPARE(resets.size(), 1);
        QCOMPARE(inserts.size(), 1); // a run that grows does not lose the selection
        QCOMPARE(model.rowCount(), 5);
        model.setTable(row(2).table);
        QCOMPARE(resets.size(), 2);
        QCOMPARE(model.rowOf(1), 1);
        QCOMPARE(model.index(1, 1).data(Qt::EditRole).toInt(), 1);
        model.setTable({});
        QCOMPARE(model.rowCount(), 0);
    }
};

KLINEAGE_UI_TEST(TestPicture)
#include "tst_picture.moc"
