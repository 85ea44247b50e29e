// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/ui/diff/pdfmarks.h"

#include <QByteArrayList>
#include <QTransform>
#include <QtEndian>

#include <algorithm>

namespace klineage::test {

namespace {

constexpr qsizetype headBytes = 400;
constexpr double pointsOfPixel = 72.0 / 96.0;

/// A stream's bytes; empty where they are not deflated.
QByteArray inflated(const QByteArray &bytes)
{
    QByteArray sized(4, '\0'); // a guess of the length, which qUncompress() corrects
    qToBigEndian<quint32>(1 << 20, sized.data());
    return qUncompress(sized + bytes);
}

/// Runs the operators of a page that place text and fill paths.
class Page
{
public:
    explicit Page(double height)
        : m_height(height)
    {}

    void run(const QByteArray &content, std::vector<PdfMark> &marks)
    {
        for (const QByteArray &token : content.simplified().split(' ')) {
            bool isNumber = false;
            const double number = token.toDouble(&isNumber);
            if (isNumber) {
                m_numbers.push_back(number);
                continue;
            }
            apply(token, marks);
            if (!token.startsWith('<') && !token.startsWith('/'))
                m_numbers.clear();
        }
    }

private:
    [[nodiscard]] double number(std::size_t fromEnd) const
    {
        return fromEnd < m_numbers.size() ? m_numbers[m_numbers.size() - 1 - fromEnd] : 0;
    }
    [[nodiscard]] QTransform matrix() const
    {
        return {number(5), number(4), number(3), number(2), number(1), number(0)};
    }
    [[nodiscard]] QPointF onPaper(const QPointF &point) const
    {
        const QPointF points = m_transform.map(point);
        return {points.x() / pointsOfPixel, m_height - points.y() / pointsOfPixel};
    }
    void reach(const QPointF &point)
    {
        const QPointF at = onPaper(point);
        const QRectF dot(at.x(), at.y(), 1e-6, 1e-6);
        m_path = m_path.isNull() ? dot : m_path.united(dot);
    }

    void apply(const QByteArray &token, std::vector<PdfMark> &marks)
    {
        if (token == "q") {
            m_stack.push_back(m_transform);
        } else if (token == "Q" && !m_stack.empty()) {
            m_transform = m_stack.back();
            m_stack.pop_back();
        } else if (token == "cm") {
            m_transform = matrix() * m_transform;
        } else if (token == "BT") {
            m_text = QTransform();
        } else if (token == "Tm") {
            m_text = matrix();
        } else if (token == "Td") {
            m_text = QTransform::fromTranslate(number(1), number(0)) * m_text;
        } else if (token == "Tj") {
            marks.push_back({true, onPaper(m_text.map(QPointF())), {}});
        } else if (token == "m" || token == "l") {
            reach({number(1), number(0)});
        } else if (token == "c") {
            reach({number(5), number(4)});
            reach({number(1), number(0)});
        } else if (token == "re") {
            reach({number(3), number(2)});
            reach({number(3) + number(1), number(2) + number(0)});
        } else if (token == "f" || token == "f*" || token == "B" || token == "B*") {
            marks.push_back({false, {}, m_path});
            m_path = {};
        } else if (token == "n" || token == "S") {
            m_path = {};
        }
    }

    double m_height;
    std::vector<double> m_numbers;
    std::vector<QTransform> m_stack;
    QTransform m_transform;
    QTransform m_text;
    QRectF m_path;
};

} // namespace

std::vector<PdfMark> pdfMarks(const QByteArray &pdf, double pageHeight)
{
    std::vector<PdfMark> marks;
    for (qsizetype at = pdf.indexOf("stream\n"); at >= 0; at = pdf.indexOf("stream\n", at + 1)) {
        if (at >= 3 && pdf.mid(at - 3, 3) == "end")
            continue;
        const QByteArray head = pdf.mid(std::max<qsizetype>(0, at - headBytes), std::min(at, headBytes));
        const QByteArray dictionary = head.mid(head.lastIndexOf("obj"));
        if (!dictionary.contains("/FlateDecode") || dictionary.contains("/Length1")) // a font
            continue;
        const qsizetype begin = at + 7;
        const qsizetype end = pdf.indexOf("endstream", begin);
        const QByteArray content = inflated(pdf.mid(begin, end - begin));
        if (content.contains("BT\n") || content.contains(" cm"))
            Page(pageHeight).run(content, marks);
    }
    return marks;
}

} // namespace klineage::test
